import { notExecuted, openCalls } from '../calls/batch.js';
import { countVisitDenials } from '../calls/open-batch.js';
import type { GraphNode } from '../definition/node-kinds.js';
import { saved } from '../definition/node-work.js';
import type { Incoming } from '../input/inbox.js';
import { advancePlan } from '../plan/plan-batch.js';
import { type Plan, planIn, planValue } from '../plan/plan.js';
import { noteActions } from '../plan/results.js';
import { withTurn } from '../state/change.js';
import type { RunState } from '../state/state.js';
import { currentNode, graphOf, isNodeBatch, isOfDecide } from '../state/turn-definition.js';
import { type Batch, getOpenBatch } from '../state/turn.js';
import type { CallResult } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';
import type { ParsedAnswer, RecordedReply } from '../transcript/outcome.js';
import {
  failAtNode,
  finishDecided,
  finishNode,
  keepResults,
  leaveWith,
  namingNode,
  nodeBatch,
  withConversation,
} from './run-node.js';
import { beginPass, joinAnswer, leave } from './walk.js';

/** Closes the open batch; `missing` supplies each absent result. */
type CloseBatch = (
  state: RunState,
  at: number,
  missing: (call: ToolCall) => CallResult,
) => RunState;

/**
 * Where graphs and plans take part in a turn. The loop of an agent calls them at these moments, and
 * continues in its own way if a hook returns null or there are no hooks. `at`: Unix time in ms.
 */
interface TurnHooks {
  /** A turn has begun with these messages. */
  begun(state: RunState, begin: { taken: readonly Incoming[]; at: number }): RunState;
  /** The work of the current node begins: its calls, as an open batch. Null without a node. */
  entered(state: RunState, at: number): RunState | null;
  /**
   * The model has replied with calls, whose batch is open, or with a text that would end the turn. Null
   * for a text outside a node.
   */
  replied(
    state: RunState,
    event: { reply: RecordedReply; at: number; close: CloseBatch },
  ): RunState | null;
  /** An answer was checked against its contract. Null outside a node. */
  answered(state: RunState, event: { parsed: ParsedAnswer; at: number }): RunState | null;
  /** A model call has failed for good. Null if the node has no exit for it. */
  failed(
    state: RunState,
    failure: { reason: string; message: string; at: number },
  ): RunState | null;
  /** Returns the message of a failure with the name of the node. */
  named(state: RunState, message: string): string;
  /** The agent of the current node continues the conversation of this run, of which the id is given. */
  conversed(state: RunState, run: string): RunState;
  /** A result was added to the open batch, after which others may be known. */
  progressed(state: RunState): RunState;
  /** Applies a batch that is a node's own work, unless a result is missing. Null for a reply's batch. */
  worked(state: RunState, batch: Batch, at: number): RunState | null;
  /** Ends a batch that is a node's own work before all results are there. Null for a reply's batch. */
  brokenOff(state: RunState, at: number): RunState | null;
  /** The results of a reply's calls have joined the transcript. Null outside a graph. */
  executed(state: RunState, batch: Batch, at: number): RunState | null;
  /** The turn is over. */
  ended(state: RunState, at: number): RunState;
}

/** Returns the hooks of a run with a graph; null for any other. */
export function hooksOf(state: RunState): TurnHooks | null {
  return state.graph === undefined && graphOf(state) === undefined ? null : HOOKS;
}

const HOOKS: TurnHooks = {
  begun: beginPass,
  entered(state, at) {
    const node = currentNode(state);
    const { graph } = state;
    if (node === undefined || graph === undefined) return null;
    const batch = nodeBatch(state, { node, graph, at });
    return advancePlan(withTurn(state, { phase: { type: 'acting', batch } }));
  },
  replied(state, event) {
    const node = currentNode(state);
    const batch = getOpenBatch(state);
    if (node === undefined) return batch === null ? null : state;
    if (batch !== null) return followCalls(state, node, { ...event, batch });
    return leaveByText(withTurn(state, { phase: { type: 'deciding' } }), node, event);
  },
  answered: followOutput,
  failed: failAtNode,
  named: namingNode,
  conversed: withConversation,
  progressed: advancePlan,
  worked(state, batch, at) {
    if (!isNodeBatch(state)) return null;
    const isOpen = openCalls(state, batch).length > 0;
    return isOpen ? state : finishNode(countVisitDenials(state, batch), batch, at);
  },
  brokenOff(state, at) {
    // The results of a graph's node are in the graph's state, not in the transcript.
    if (!isNodeBatch(state)) return null;
    return withTurn(keepResults(state, at), { phase: { type: 'deciding' } });
  },
  executed: (state, batch, at) =>
    state.graph === undefined ? null : finishDecided(state, batch, at),
  ended: (state, at) => (state.graph === undefined ? state : joinAnswer(state, at)),
};

/**
 * Applies the calls of a `decide` or `plan` node. If the exit leads to a node that does not execute
 * the calls, they are dropped.
 */
function followCalls(
  state: RunState,
  node: GraphNode,
  { batch, at, close }: { batch: Batch; at: number; close: CloseBatch },
): RunState {
  if (node.kind === 'plan' && node.planning === 'catalog') return notePlan(state, node, batch);
  // A node with an output contract refuses the calls and asks the model again.
  if (node.kind !== 'decide' || node.output !== undefined)
    return close(state, at, (one) => notExecuted(one, 'no tool can be called here'));
  const [call] = batch.calls;
  const exit = node.exits.find(({ name }) => name === call?.name);
  // The model receives the reason as the call's result and decides again.
  if (exit === undefined)
    return close(state, at, (one) => notExecuted(one, 'the graph has no exit for this tool'));
  const left = leave(state, { exit: exit.name, at });
  const next = currentNode(left);
  if (next?.kind === 'tool' && isOfDecide(next) && next.tool === call?.name) return left;
  const closed = close(state, at, (one) => notExecuted(one, 'the graph continued without it'));
  return leave(closed, { exit: exit.name, at });
}

/** Leaves the node by a text without calls. */
function leaveByText(
  state: RunState,
  node: GraphNode,
  { reply, at }: { readonly reply: RecordedReply; readonly at: number },
): RunState {
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
 * allowed reply. Null without a node.
 */
function followOutput(
  state: RunState,
  { parsed, at }: { readonly parsed: ParsedAnswer; readonly at: number },
): RunState | null {
  const node = currentNode(state);
  const deciding = withTurn(state, { phase: { type: 'deciding' } });
  if (node === undefined) return null;
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
