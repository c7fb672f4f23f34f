import { endTurn, withTurn } from '../change.js';
import { byteLength } from '../inbox.js';
import type { CallResult } from '../calls/call-result.js';
import { failed } from '../make-outcome.js';
import { isObject, parseJson, textField, type Json, type JsonObject } from '../json.js';
import type { RunState } from '../state.js';
import type { Batch } from '../turn.js';
import { readConfirmation } from './confirm.js';
import type { GraphNode } from './definition.js';
import { currentNode, findNode, graphOf, nodeOfCall } from './node-tool.js';
import { itemsOf } from './values.js';
import { leave } from './walk.js';

/** Bytes of JSON that a state may have: it is passed to the nodes and from segment to segment. */
const MAX_STATE_BYTES = 1_000_000;

/** How a node has ended. `error` is for an exit `failed`. */
interface NodeEnd {
  readonly exit: string;
  readonly patch?: JsonObject;
  readonly error?: { readonly type: string; readonly message: string };
}

/** Leaves the current node with the results of its calls. Does nothing while one is missing. */
export function finishNode(state: RunState, batch: Batch, at: number): RunState {
  const graph = graphOf(state);
  const node = graph && findNode(graph, state.graph?.at?.node ?? '');
  if (node === undefined || batch.results.includes(null)) return state;
  const deciding = withTurn(state, { phase: { type: 'deciding' } });
  const results = batch.results.flatMap((result) => result ?? []);
  return leaveWith(deciding, node, { ...endOf(deciding, node, { batch, results }), at });
}

/**
 * Leaves a `tool` node that has executed the call of the `decide` before it. Its result is in the
 * transcript already.
 */
export function finishDecided(state: RunState, { results }: Batch, at: number): RunState {
  const node = currentNode(state);
  if (node?.kind !== 'tool') return state;
  const [result] = results;
  return leaveWith(state, node, { ...toolEnd(node, result ?? undefined), at });
}

/** Leaves a node of a graph as it has ended. A failure without an exit ends the turn. */
export function leaveWith(
  state: RunState,
  node: GraphNode,
  { exit, patch, error, at }: NodeEnd & { readonly at: number },
): RunState {
  const graph = graphOf(state);
  const bytes = byteLength(JSON.stringify({ ...state.graph?.values, ...patch }));
  if (patch !== undefined && bytes > MAX_STATE_BYTES) {
    const message = `the state would have ${bytes} bytes of JSON, at most ${MAX_STATE_BYTES} fit; keep large values elsewhere`;
    return leaveWith(state, node, { exit: 'failed', error: { type: 'too_large', message }, at });
  }
  const hasExit = node.exits.some(({ name }) => name === exit);
  if (error !== undefined && !hasExit) {
    const message = `node "${node.name}": ${error.type}: ${error.message}`;
    return endTurn(state, failed(state, { reason: 'error', message }));
  }
  const field = error === undefined ? undefined : graph?.errorTo;
  const noted = field === undefined ? {} : { [field]: { node: node.name, ...error } };
  return leave(state, { exit, patch: { ...patch, ...noted }, at });
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
      return confirmEnd(node, result);
    case 'tool':
      return toolEnd(node, result);
    case 'each':
      return eachEnd(state, node, { batch, results });
    case 'choose':
    case 'decide':
      return { exit: 'failed' };
  }
}

/** What a worker records for a node: see `NodeResult`. */
function functionEnd(node: GraphNode, { output }: CallResult): NodeEnd {
  const { exit, patch } = isObject(output) ? output : {};
  return {
    exit: node.kind === 'route' && typeof exit === 'string' ? exit : 'done',
    ...(isObject(patch) && { patch }),
  };
}

function toolEnd(node: { readonly save?: string }, result: CallResult | undefined): NodeEnd {
  if (!result?.ok) return failedEnd(result);
  return { exit: 'done', patch: saved(node, result.output ?? result.text) };
}

function failedEnd(result: CallResult | undefined): NodeEnd {
  return { exit: 'failed', error: errorIn(result?.text ?? '') };
}

/** Reads an error as a model would see it. */
function errorIn(text: string): { readonly type: string; readonly message: string } {
  const value = parseText(text);
  const error = isObject(value) && isObject(value['error']) ? value['error'] : {};
  const message = textField(error, 'message');
  return { type: textField(error, 'type') || 'failed', message: message || text };
}

function parseText(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** The end of a called agent or graph. */
function calledEnd(node: GraphNode & { readonly save?: string }, output: Json): NodeEnd {
  const { status, answer, value, error } = isObject(output) ? output : {};
  const patch = saved(node, value ?? answer ?? null);
  switch (status) {
    case 'completed':
      return { exit: 'done', patch };
    case 'stopped':
      return { exit: 'stopped', patch };
    default:
      return { exit: 'failed', error: { type: 'agent_failed', message: toText(error) } };
  }
}

function toText(error: unknown): string {
  return typeof error === 'string' ? error : 'it left no outcome';
}

function confirmEnd(node: GraphNode, result: CallResult | undefined): NodeEnd {
  if (result?.ok) return { exit: readConfirmation(result.text) ?? 'no' };
  const expired = node.exits.some(({ name }) => name === 'expired');
  return { exit: expired && result?.expired ? 'expired' : 'no' };
}

/** Every item has a result, also those whose call was the same as an earlier one. */
function eachEnd(
  state: RunState,
  node: Extract<GraphNode, { kind: 'each' }>,
  { batch, results }: { readonly batch: Batch; readonly results: readonly CallResult[] },
): NodeEnd {
  if (itemsOf(node.over, state.graph?.values ?? {}) === null) {
    const message = 'the value to go over is not a list, or has more than 1,000 items';
    return { exit: 'failed', error: { type: 'no_list', message } };
  }
  const values = results.map((result, index): Json => {
    const isOwn = nodeOfCall(batch.calls[index] ?? { name: '' }) !== null;
    const end = isOwn && node.body.kind !== 'run' ? calledEnd(node, result.output ?? null) : null;
    if (result.ok && end?.error === undefined) return { ok: true, value: valueOf(result, isOwn) };
    return { ok: false, error: { ...(end?.error ?? errorIn(result.text)) } };
  });
  return { exit: 'done', patch: saved(node, values) };
}

/** What one item has brought: the value of a function, the answer of an agent, or a tool's value. */
function valueOf({ output, text }: CallResult, isOwn: boolean): Json {
  if (!isOwn || !isObject(output)) return output ?? text;
  const { value, answer } = output;
  return value ?? answer ?? null;
}

function saved({ save }: { readonly save?: string }, value: Json): JsonObject {
  return save === undefined ? {} : { [save]: value };
}
