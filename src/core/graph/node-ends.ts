import { planEnd, readYesOrNo } from '../plan/confirm-plan.js';
import { resultsOf } from '../plan/plan-batch.js';
import type { BudgetName } from '../definition/definition.js';
import type { GraphNode } from '../definition/graph-definition.js';
import { type ConfirmedPlan, type RunState, keepsEarlierMeaning } from '../state/state.js';
import { leavesByExpired, nodeOfCall } from '../state/turn-definition.js';
import type { Batch } from '../state/turn.js';
import { type Json, type JsonObject, errorIn, isObject, itemsOf } from '../text/json.js';
import { type CallResult, toolValue } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';

/** How a node has ended. `error` is for an exit `failed`. */
export interface NodeEnd {
  readonly exit: string;
  readonly patch?: JsonObject;
  readonly error?: { readonly type: string; readonly message: string };
  /** The limit that allowed the node's function no further model call. */
  readonly limit?: BudgetName;
  /** The plan that a person confirmed. */
  readonly confirmed?: ConfirmedPlan;
  /** A person's request for another plan; the model reads it as a message. */
  readonly change?: string;
  /** A person's note for the model. */
  readonly note?: string;
  /** The answer of the agents or the graph that the node called. */
  readonly said?: string;
}

/** The calls of a visit, and their results in the same order. */
export interface Visited {
  readonly batch: Batch;
  readonly results: readonly CallResult[];
}

/**
 * Maximum characters of arguments for the calls of one visit, because a new segment receives them.
 */
const MAX_BATCH_CHARACTERS = 1_000_000;

/** Returns why the calls of one visit are too large; null if they are not. */
export function sizeFault(calls: readonly Pick<ToolCall, 'arguments'>[]): string | null {
  const characters = calls.reduce((sum, call) => sum + call.arguments.length, 0);
  if (calls.length < 2 || characters <= MAX_BATCH_CHARACTERS) return null;
  return `all items together have ${characters} characters of arguments, at most ${MAX_BATCH_CHARACTERS} fit`;
}

/** Returns the end of a node's function from the worker's record: see `NodeResult`. */
export function functionEnd(
  node: Extract<GraphNode, { kind: 'run' | 'route' }>,
  result: CallResult | undefined,
): NodeEnd {
  if (!result?.ok) return failedEnd(result);
  const { output } = result;
  const { exit, patch } = isObject(output) ? output : {};
  return {
    exit: node.kind === 'route' && typeof exit === 'string' ? exit : 'done',
    ...(isObject(patch) && { patch }),
  };
}

export function toolEnd(node: { readonly save?: string }, result: CallResult | undefined): NodeEnd {
  if (!result?.ok) return failedEnd(result);
  return { exit: 'done', patch: saved(node.save, toolValue(result)) };
}

function failedEnd(result: CallResult | undefined): NodeEnd {
  const { limit } = result ?? {};
  return { exit: 'failed', error: errorIn(result?.text ?? ''), ...(limit && { limit }) };
}

export function agentEnd(
  node: Extract<GraphNode, { kind: 'agent' | 'graph' }>,
  result: CallResult | undefined,
): NodeEnd {
  return result?.output === undefined ? failedEnd(result) : calledEnd(node, result.output);
}

/** Returns the end of a node that called an agent or a graph. */
function calledEnd(node: GraphNode & { readonly save?: string }, output: Json): NodeEnd {
  const { status, answer, value, error } = isObject(output) ? output : {};
  const patch = saved(node.save, value ?? answer ?? null);
  const said = typeof answer === 'string' && { said: answer };
  switch (status) {
    case 'completed':
      return { exit: 'done', patch, ...said };
    case 'stopped':
      return { exit: 'stopped', patch, ...said };
    default:
      return { exit: 'failed', error: { type: 'agent_failed', message: toText(error) } };
  }
}

function toText(error: unknown): string {
  return typeof error === 'string' ? error : 'it returned no outcome';
}

export function confirmEnd(
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
    return { ...end, ...noted };
  }
  return { exit: expired ? 'expired' : (readYesOrNo(text) ?? 'no'), ...noted };
}

/** Returns the end of an `execute` node. It saves all results by action id, across visits. */
export function executeEnd(
  state: RunState,
  node: Extract<GraphNode, { kind: 'execute' }>,
  results: readonly CallResult[],
): NodeEnd {
  const patch = { [node.save]: resultsOf(state.graph?.values ?? {}, node, results) };
  return { exit: results.every(({ ok }) => ok) ? 'done' : 'some_failed', patch };
}

/** Returns the end of an `each` node. Items with identical calls each have a result. */
export function eachEnd(
  state: RunState,
  node: Extract<GraphNode, { kind: 'each' }>,
  { batch, results }: { readonly batch: Batch; readonly results: readonly CallResult[] },
): NodeEnd {
  if (itemsOf(node.over, state.graph?.values ?? {}) === null) {
    const message = 'the value to go over is not a list, or has more than 1,000 items';
    return { exit: 'failed', error: { type: 'no_list', message } };
  }
  const fault = sizeFault(batch.calls);
  if (fault !== null) return { exit: 'failed', error: { type: 'too_large', message: fault } };
  const ends = results.map((result, index) => {
    const isOwn = nodeOfCall(batch.calls[index] ?? { name: '' }) !== null;
    const end = isOwn && node.body.kind !== 'run' ? calledEnd(node, result.output ?? null) : null;
    const value: Json =
      result.ok && end?.error === undefined
        ? { ok: true, value: valueOf(result, isOwn) }
        : { ok: false, error: { ...(end?.error ?? errorIn(result.text)) } };
    return { value, said: end?.said };
  });
  const said = ends
    .flatMap((end, index) => (end.said === undefined ? [] : [`${index + 1}. ${end.said}`]))
    .join('\n\n');
  const values = ends.map(({ value }) => value);
  return { exit: 'done', patch: saved(node.save, values), said };
}

/** Returns one item's value: that of a function or a tool, or an agent's answer. */
function valueOf(result: CallResult, isOwn: boolean): Json {
  const { output } = result;
  if (!isOwn || !isObject(output)) return toolValue(result);
  const { value, answer } = output;
  return value ?? answer ?? null;
}

/** Returns a patch with one field; empty if no field is named. */
export function saved(field: string | undefined, value: Json): JsonObject {
  return field === undefined ? {} : { [field]: value };
}
