import { notExecuted } from '../calls/batch.js';
import { closeBatch } from '../calls/complete-batch.js';
import { withTurn } from '../change.js';
import type { ParsedAnswer, RecordedReply } from '../reply.js';
import type { RunState } from '../state.js';
import { getOpenBatch, type Batch } from '../turn.js';
import { noteActions } from '../plan/note-actions.js';
import { planIn, planValue, type Plan } from '../plan/plan.js';
import { leaveWith, saved } from './finish-node.js';
import type { GraphNode } from './definition.js';
import { currentNode, isOfDecide } from './node-tool.js';
import { leave } from './walk.js';

/**
 * Applies the decision of a `decide` node: a call, or a text. In `acting`, the call's batch is
 * open. If the exit leads to a node that does not execute the calls, they are dropped.
 */
export function followDecision(
  state: RunState,
  { reply, at }: { readonly reply: RecordedReply; readonly at: number },
): RunState {
  const node = currentNode(state);
  const batch = getOpenBatch(state);
  if (node === undefined) return state;
  if (batch === null) {
    return leaveByText(withTurn(state, { phase: { type: 'deciding' } }), node, { reply, at });
  }
  if (node.kind === 'plan' && node.planning === 'catalog') return notePlan(state, node, batch);
  // A node with an output contract refuses the calls and asks the model again.
  if (node.kind !== 'decide' || node.output !== undefined)
    return closeBatch(state, at, (one) => notExecuted(one, 'no tool can be called here'));
  const [call] = batch.calls;
  const exit = node.exits.find(({ name }) => name === call?.name);
  // The model receives the reason as the call's result and decides again.
  if (exit === undefined)
    return closeBatch(state, at, (one) => notExecuted(one, 'the graph has no exit for this tool'));
  const left = leave(state, { exit: exit.name, at });
  const next = currentNode(left);
  if (next?.kind === 'tool' && isOfDecide(next) && next.tool === call?.name) return left;
  const closed = closeBatch(state, at, (one) => notExecuted(one, 'the graph continued without it'));
  return leave(closed, { exit: exit.name, at });
}

interface TextReply {
  readonly reply: RecordedReply;
  readonly at: number;
}

/** Leaves the node by a text without calls. */
function leaveByText(state: RunState, node: GraphNode, { reply, at }: TextReply): RunState {
  const { text } = reply;
  switch (node.kind) {
    case 'decide':
      return leaveWith(state, node, { exit: 'text', patch: saved(node.save, text), at });
    case 'answer':
      return leaveWith(state, node, { exit: 'done', patch: saved(node.save, text), at });
    case 'plan': {
      const plan = { ...planIn(state.graph?.values ?? {}, node.save), answer: text };
      return leavePlan(state, node, { plan, at });
    }
    default:
      return state;
  }
}

/** Leaves a `plan` node by `planned` if the plan has actions, else by `answered`. */
function leavePlan(
  state: RunState,
  node: Extract<GraphNode, { kind: 'plan' }>,
  { plan, at }: { readonly plan: Plan; readonly at: number },
): RunState {
  const patch = { [node.save]: planValue(plan) };
  if (plan.actions.length > 0) return leaveWith(state, node, { exit: 'planned', patch, at });
  const answer = saved(node.answer, plan.answer ?? '');
  return leaveWith(state, node, { exit: 'answered', patch: { ...patch, ...answer }, at });
}

/**
 * Leaves a node with a reply that was checked against its contract. `parsed` is the node's last
 * allowed reply.
 */
export function followOutput(
  state: RunState,
  { parsed, at }: { readonly parsed: ParsedAnswer; readonly at: number },
): RunState {
  const node = currentNode(state);
  const deciding = withTurn(state, { phase: { type: 'deciding' } });
  if (node === undefined) return state;
  if (!parsed.ok) {
    const type = node.kind === 'plan' ? 'invalid_plan' : 'invalid_output';
    const error = { type, message: parsed.problem };
    return leaveWith(deciding, node, { exit: 'failed', error, at });
  }
  if (node.kind === 'plan') {
    const plan = planIn({ plan: parsed.output }, 'plan');
    return leavePlan(deciding, node, { plan, at });
  }
  const patch = node.kind === 'decide' ? saved(node.save, parsed.output) : {};
  return leaveWith(deciding, node, { exit: 'done', patch, at });
}

/**
 * Records the actions of a message in the plan. Reads are executed; every other call gets its
 * result at once.
 */
function notePlan(
  state: RunState,
  node: Extract<GraphNode, { kind: 'plan' }>,
  batch: Batch,
): RunState {
  const { graph } = state;
  if (graph === undefined) return state;
  const noted = noteActions(state, node, batch);
  const values = { ...graph.values, [node.save]: planValue(noted.plan) };
  const planned = { ...state, graph: { ...graph, values } };
  return withTurn(planned, { phase: { type: 'acting', batch: noted.batch } });
}
