import type { BudgetName } from '../definition/definition.js';
import { type GraphNode, nodeEnd, plannedCalls } from '../definition/node-kinds.js';
import type { NodeEnd as PlainEnd, Planned } from '../definition/node-work.js';
import { actorOf } from '../input/turn-context.js';
import { planEnd, readYesOrNo, showPlan } from '../plan/confirm-plan.js';
import { planCalls, resultsOf } from '../plan/plan-batch.js';
import { planIn, planValue } from '../plan/plan.js';
import {
  type ConfirmedPlan,
  type GraphState,
  type RunState,
  keepsEarlierMeaning,
} from '../state/state.js';
import { leavesByExpired, nodeCallId, nodeCallName } from '../state/turn-definition.js';
import type { Batch } from '../state/turn.js';
import { type JsonObject, canonicalJson, evaluateText, sha256Hex } from '../text/json.js';
import type { CallResult } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';

/** How a node of a run has ended. */
export interface NodeEnd extends Omit<PlainEnd, 'cause'> {
  /** The limit that allowed the node's function no further model call. */
  readonly limit?: BudgetName;
  /** The plan that a person confirmed. */
  readonly confirmed?: ConfirmedPlan;
  /** A person's request for another plan; the model reads it as a message. */
  readonly change?: string;
  /** Who requested it, and the interface that has verified that. */
  readonly by?: string;
  readonly door?: string;
  /** A person's note for the model. */
  readonly note?: string;
}

/** The calls of a visit, and their results in the same order. */
interface Visited {
  readonly batch: Pick<Batch, 'calls'>;
  readonly results: readonly CallResult[];
}

/** Returns the calls with which a visit of a node begins. */
export function callsOf(node: GraphNode, graph: GraphState): readonly ToolCall[] {
  if (node.kind === 'execute') return planCalls(node, graph);
  const planned =
    node.kind === 'confirm' ? [question(node, graph.values)] : plannedCalls(node, graph.values);
  return planned.map(({ tool, arguments: given }, index): ToolCall => {
    const name = tool ?? nodeCallName(node.name);
    const json = canonicalJson(given);
    const id = `${nodeCallId(node.name, graph)}_${index}`;
    return { id, name, arguments: json, digest: sha256Hex(json), node: node.name };
  });
}

/** Returns how the visit of a node has ended. */
export function endOf(state: RunState, node: GraphNode, { batch, results }: Visited): NodeEnd {
  const values = state.graph?.values ?? {};
  if (node.kind === 'confirm') return confirmEnd(state, node, results[0]);
  if (node.kind === 'execute') {
    // All results are saved by action id, across visits.
    const patch = { [node.save]: resultsOf(values, node, results) };
    return { exit: results.every(({ ok }) => ok) ? 'done' : 'some_failed', patch };
  }
  const { cause, ...end } = nodeEnd(node, { calls: batch.calls, results }, values);
  return { ...end, ...(cause?.limit && { limit: cause.limit }) };
}

function confirmEnd(
  state: RunState,
  node: Extract<GraphNode, { kind: 'confirm' }>,
  result: CallResult | undefined,
): NodeEnd {
  const expired = leavesByExpired(node) && result?.expired === true;
  const text = result?.ok ? result.text : 'no';
  const noted = result?.note === undefined ? {} : { note: result.note };
  if (node.plan !== undefined) {
    const earlier = keepsEarlierMeaning(state, result ?? {});
    const end = planEnd(state.graph?.values ?? {}, node.plan, { text, expired, earlier });
    return { ...end, ...actorOf(result ?? {}), ...noted };
  }
  return { exit: expired ? 'expired' : (readYesOrNo(text) ?? 'no'), ...noted };
}

/**
 * Returns the question for a person. It includes the plan, so the decision is bound to every
 * action.
 */
function question(
  { show, plan: field }: Extract<GraphNode, { kind: 'confirm' }>,
  values: JsonObject,
): Planned {
  const text = evaluateText(show, { state: values });
  const options = ['yes', 'no'];
  if (field === undefined) return { tool: null, arguments: { question: text, options } };
  const plan = planIn(values, field);
  const shown = [...(text === '' ? [] : [text, '']), showPlan(plan)].join('\n');
  const { actions } = planValue(plan);
  return { tool: null, arguments: { question: shown, options, actions } };
}
