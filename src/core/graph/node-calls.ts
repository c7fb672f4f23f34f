import { CALLS_USED_UP, DEPTH_REACHED, notExecuted, tooDeep } from '../calls/batch.js';
import { denial } from '../calls/open-batch.js';
import type { GraphNode } from '../definition/graph-definition.js';
import { resultsOf } from '../plan/plan-batch.js';
import { cutValue, doneText } from '../plan/results.js';
import { callsLeft } from '../rules/limits.js';
import { appendMessage } from '../state/change.js';
import type { GraphState, RunState } from '../state/state.js';
import { currentNode, definedTool, nodeCallName, visitsOf } from '../state/turn-definition.js';
import { type Batch, getOpenBatch } from '../state/turn.js';
import { errorIn } from '../text/json.js';
import { type CallResult, deniedCall } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';
import { sizeFault } from './node-ends.js';
import { callsOf } from './node-kinds.js';

/** Returns the results that this visit had before it was interrupted. */
function resultsBefore(
  { at, interrupted }: GraphState,
  { name }: GraphNode,
): readonly CallResult[] {
  if (interrupted?.node !== name || interrupted.visit !== at?.visit) return [];
  return interrupted.results;
}

/** Returns the calls with which a visit of a node begins, as a batch. `at`: Unix time in ms. */
export function nodeBatch(
  state: RunState,
  {
    node,
    graph,
    at,
  }: { readonly node: GraphNode; readonly graph: GraphState; readonly at: number },
): Batch {
  // Each visit places its calls elsewhere, so they get other idempotency keys.
  const step = state.turn.spent.steps + visitsOf(graph);
  const calls = callsOf(node, graph);
  const fault = sizeFault(calls);
  let left = callsLeft(state);
  const earlier = resultsBefore(graph, node);
  const results = calls.map((call) => {
    const known = earlier.find(({ id }) => id === call.id);
    if (known !== undefined) return known;
    if (fault !== null) return notExecuted(call, fault);
    if (tooDeep(state, call)) return notExecuted(call, DEPTH_REACHED);
    const denied = denial(state, call);
    if (denied !== null) return deniedCall(call, denied);
    if (call.name === nodeCallName(node.name)) return null;
    left -= 1;
    return left < 0 ? notExecuted(call, CALLS_USED_UP) : null;
  });
  return { step, at, calls, results };
}

/** Maximum characters of all results kept from an interrupted visit. */
const MAX_KEPT = 400_000;

/**
 * Keeps the results of the current node's calls when its work is interrupted. The visit may resume
 * later and must not repeat completed calls. For a plan, a report of them is added to the
 * transcript.
 */
export function keepResults(state: RunState, at: number): RunState {
  const node = currentNode(state);
  const batch = getOpenBatch(state);
  const { graph } = state;
  if (node === undefined || batch === null || !graph?.at) return state;
  const kept = batch.calls.flatMap((call, index) => {
    const result = batch.results[index];
    return result && hasHappened(state, call, result) ? [result] : [];
  });
  if (node.kind === 'execute') {
    const values = { ...graph.values, [node.save]: resultsOf(graph.values, node, kept) };
    const saved = { ...state, graph: { ...graph, values } };
    const text = doneText({ values, plan: node.plan, results: node.save });
    if (text === null) return saved;
    return appendMessage(saved, at, { role: 'user', text, origin: 'perdure' });
  }
  if (kept.length === 0) return state;
  const share = MAX_KEPT / kept.length;
  const results = kept.map((result) =>
    result.output === undefined ? result : { ...result, output: cutValue(result.output, share) },
  );
  const interrupted = { node: node.name, visit: graph.at.visit, results };
  return { ...state, graph: { ...graph, interrupted } };
}

/** Whether a call counts as done. A canceled call can be repeated, unless its tool is `once`. */
function hasHappened(
  { config }: RunState,
  call: ToolCall,
  { executed, text }: CallResult,
): boolean {
  if (!executed) return false;
  if (errorIn(text).type !== 'cancelled') return true;
  return definedTool(config.definition, call.name)?.effect === 'once';
}

type AgentNode = Extract<GraphNode, { kind: 'agent' }>;

/**
 * Returns the workflow id of the run whose conversation the node continues; undefined if there is
 * none.
 */
export function continuedRun({ graph }: RunState, { name, agent }: AgentNode): string | undefined {
  // After a refresh, the node may call another agent, which must not read the conversation.
  return graph?.conversations?.find((one) => one.node === name && one.agent === agent)?.run;
}

/** Records the run that the current node's next visit continues. */
export function withConversation(state: RunState, run: string): RunState {
  const { graph } = state;
  const node = currentNode(state);
  if (graph === undefined || node?.kind !== 'agent') return state;
  const { name, agent } = node;
  const conversations = [
    ...(graph.conversations ?? []).filter((one) => one.node !== name),
    { node: name, agent, run },
  ];
  return { ...state, graph: { ...graph, conversations } };
}
