import { appendMessage, endTurn, withTurn, failed } from '../state/change.js';
import { byteLength } from '../input/inbox.js';
import { toolValue, type CallResult } from '../transcript/call-result.js';
import {
  isObject,
  type Json,
  type JsonObject,
  errorIn,
  answerText,
  itemsOf,
} from '../text/json.js';
import type { BudgetName } from '../definition/definition.js';
import { keepsEarlierMeaning, type RunState, type ConfirmedPlan } from '../state/state.js';
import type { Batch } from '../state/turn.js';
import { planEnd, readYesOrNo } from '../plan/confirm-plan.js';
import { noteReads } from '../plan/results.js';
import { planIn, planValue } from '../plan/plan.js';
import { resultsOf } from '../plan/plan-batch.js';
import type { GraphNode } from '../definition/graph-definition.js';
import { currentNode, findNode, graphOf, nodeOfCall } from '../state/turn-definition.js';
import { sizeFault } from './node-calls.js';
import { leave } from './walk.js';

/** Maximum bytes of a state's JSON, which is passed to the nodes and from segment to segment. */
const MAX_STATE_BYTES = 1_000_000;

/** Maximum characters of an error's message in the state. */
const MAX_ERROR = 4_000;

/** How a node has ended. `error` is for an exit `failed`. */
interface NodeEnd {
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

/** Leaves the current node with the results of its calls. Does nothing while one is missing. */
export function finishNode(state: RunState, batch: Batch, at: number): RunState {
  const graph = graphOf(state);
  const node = graph && findNode(graph, state.graph?.at?.node ?? '');
  if (node === undefined || batch.results.includes(null)) return state;
  const deciding = withTurn(state, { phase: { type: 'deciding' } });
  const results = batch.results.flatMap((result) => result ?? []);
  const end = endOf(deciding, node, { batch, results });
  const answered = withSaid(withAnswer(deciding, end, at), node, { ...end, at });
  return leaveWith(answered, node, { ...end, at });
}

/** Adds the answer of a node to the conversation, if the graph's model reads it there. */
function withSaid(
  state: RunState,
  { name }: GraphNode,
  { said = '', at }: Pick<NodeEnd, 'said'> & { readonly at: number },
): RunState {
  if (graphOf(state)?.nodesJoin === undefined || said.trim() === '') return state;
  const text = answerText(said);
  return appendMessage(state, at, { role: 'assistant', text, origin: 'graph', node: name });
}

/** Adds a person's answer to a plan to the run's state. */
function withAnswer(state: RunState, end: NodeEnd, at: number): RunState {
  const { confirmed, change, note, exit } = end;
  const { graph } = state;
  const decided = graph && confirmed ? { ...state, graph: { ...graph, confirmed } } : state;
  const known =
    note === undefined
      ? decided
      : appendMessage(decided, at, {
          role: 'user',
          text: `[a person answered "${exit}" and noted: ${note}]`,
          origin: 'perdure',
        });
  if (change === undefined) return known;
  // A change that came as a message joins the turn as that message.
  const { number } = state.turn;
  if (state.inbox.waiting.some(({ turn, text }) => turn === number && text.includes(change)))
    return known;
  return appendMessage(known, at, { role: 'user', text: change });
}

/**
 * Leaves a `tool` node whose result is already in the transcript: a preceding `decide` called it.
 */
export function finishDecided(state: RunState, batch: Batch, at: number): RunState {
  const node = currentNode(state);
  if (node?.kind === 'plan') return withReads(state, node, batch);
  if (node?.kind !== 'tool') return state;
  const [result] = batch.results;
  return leaveWith(state, node, { ...toolEnd(node, result ?? undefined), at });
}

/** Lets the planner continue with the results of its reads. */
function withReads(state: RunState, { save }: { readonly save: string }, batch: Batch): RunState {
  const { graph } = state;
  if (graph === undefined) return state;
  const plan = noteReads(planIn(graph.values, save), batch);
  return { ...state, graph: { ...graph, values: { ...graph.values, [save]: planValue(plan) } } };
}

/** Leaves a graph's node by the exit for its end. A failure without an exit ends the turn. */
export function leaveWith(
  state: RunState,
  node: GraphNode,
  { exit, patch, error, limit, at }: NodeEnd & { readonly at: number },
): RunState {
  const graph = graphOf(state);
  const field = error === undefined ? undefined : graph?.errorTo;
  const noted =
    error === undefined || field === undefined
      ? {}
      : { [field]: { node: node.name, ...error, message: error.message.slice(0, MAX_ERROR) } };
  const bytes = byteLength(JSON.stringify({ ...state.graph?.values, ...patch, ...noted }));
  if (patch !== undefined && bytes > MAX_STATE_BYTES) {
    const message = `the state would have ${bytes} bytes of JSON, at most ${MAX_STATE_BYTES} fit; keep large values elsewhere`;
    return leaveWith(state, node, { exit: 'failed', error: { type: 'too_large', message }, at });
  }
  const hasExit = node.exits.some(({ name }) => name === exit);
  // The turn ends at its limit, or a person raises it and the node runs again.
  if (limit !== undefined && !hasExit) return withTurn(state, { limit });
  if (error !== undefined && !hasExit) {
    const message = `node "${node.name}": ${error.type}: ${error.message}`;
    return endTurn(state, failed(state, { reason: 'error', message }));
  }
  return leave(state, { exit, patch: { ...patch, ...noted }, at });
}

/** Returns the message with the name of the run's current node, if it has one. */
export function namingNode(state: RunState, message: string): string {
  const node = currentNode(state);
  return node === undefined ? message : `node "${node.name}": ${message}`;
}

/**
 * Leaves the current node by `failed` after its model call has failed. Null if the run has no
 * current node, or the node lacks that exit; the turn then ends as it does for an agent.
 */
export function failAtNode(
  state: RunState,
  {
    reason,
    message,
    at,
  }: { readonly reason: string; readonly message: string; readonly at: number },
): RunState | null {
  const node = currentNode(state);
  if (!node?.exits.some(({ name }) => name === 'failed')) return null;
  const deciding = withTurn(state, { phase: { type: 'deciding' } });
  return leaveWith(deciding, node, { exit: 'failed', error: { type: reason, message }, at });
}

function endOf(
  state: RunState,
  node: GraphNode,
  { batch, results }: { readonly batch: Batch; readonly results: readonly CallResult[] },
): NodeEnd {
  const [result] = results;
  switch (node.kind) {
    case 'run':
    case 'route':
      return result?.ok ? functionEnd(node, result) : failedEnd(result);
    case 'agent':
    case 'graph':
      return result?.output === undefined ? failedEnd(result) : calledEnd(node, result.output);
    case 'confirm':
      return confirmEnd(state, node, result);
    case 'tool':
      return toolEnd(node, result);
    case 'each':
      return eachEnd(state, node, { batch, results });
    case 'execute':
      return executeEnd(state, node, results);
    case 'choose':
    case 'decide':
    case 'plan':
    case 'answer':
      return { exit: 'failed' };
  }
}

/** Returns the end of a node's function from the worker's record: see `NodeResult`. */
function functionEnd(node: GraphNode, { output }: CallResult): NodeEnd {
  const { exit, patch } = isObject(output) ? output : {};
  return {
    exit: node.kind === 'route' && typeof exit === 'string' ? exit : 'done',
    ...(isObject(patch) && { patch }),
  };
}

function toolEnd(node: { readonly save?: string }, result: CallResult | undefined): NodeEnd {
  if (!result?.ok) return failedEnd(result);
  return { exit: 'done', patch: saved(node.save, toolValue(result)) };
}

function failedEnd(result: CallResult | undefined): NodeEnd {
  const { limit } = result ?? {};
  return { exit: 'failed', error: errorIn(result?.text ?? ''), ...(limit && { limit }) };
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

function confirmEnd(
  state: RunState,
  node: Extract<GraphNode, { kind: 'confirm' }>,
  result: CallResult | undefined,
): NodeEnd {
  const expired = node.exits.some(({ name }) => name === 'expired') && result?.expired === true;
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
function executeEnd(
  state: RunState,
  node: Extract<GraphNode, { kind: 'execute' }>,
  results: readonly CallResult[],
): NodeEnd {
  const patch = { [node.save]: resultsOf(state.graph?.values ?? {}, node, results) };
  return { exit: results.every(({ ok }) => ok) ? 'done' : 'some_failed', patch };
}

/** Returns the end of an `each` node. Items with identical calls each have a result. */
function eachEnd(
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
