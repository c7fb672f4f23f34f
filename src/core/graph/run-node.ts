import { sizeFault, type NodeEnd as PlainEnd, type Planned } from '../definition/node-work.js';
import { appendMessage, endTurn, withTurn, failed } from '../state/change.js';
import { byteLength } from '../input/inbox.js';
import { actorOf } from '../input/turn-context.js';
import {
  answerText,
  errorIn,
  type JsonObject,
  canonicalJson,
  evaluateText,
  sha256Hex,
} from '../text/json.js';
import {
  type RunState,
  type GraphState,
  type ConfirmedPlan,
  decidesItself,
  keepsEarlierMeaning,
} from '../state/state.js';
import { type Batch, getOpenBatch } from '../state/turn.js';
import { noteReads, cutValue, doneText } from '../plan/results.js';
import { planIn, planValue } from '../plan/plan.js';
import { type GraphNode, nodeEnd, plannedCalls } from '../definition/node-kinds.js';
import {
  currentNode,
  findNode,
  graphOf,
  definedTool,
  nodeCallName,
  visitsOf,
  leavesByExpired,
  nodeCallId,
} from '../state/turn-definition.js';
import { formatBytes } from '../state/summaries.js';
import { CALLS_USED_UP, DEPTH_REACHED, notExecuted, tooDeep } from '../calls/batch.js';
import { denial } from '../calls/open-batch.js';
import { resultsOf, planCalls } from '../plan/plan-batch.js';
import { callsLeft } from '../rules/limits.js';
import { type CallResult, deniedCall, nodeFailureText } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';
import { leave } from './walk.js';
import type { BudgetName } from '../definition/definition.js';
import { planEnd, readYesOrNo, showPlan } from '../plan/confirm-plan.js';

/** Maximum bytes of a state's JSON, which is passed to the nodes and from segment to segment. */
const MAX_STATE_BYTES = 1_000_000;

/** Maximum characters of an error's message in the state. */
const MAX_ERROR = 4_000;

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
  return appendMessage(known, at, { role: 'user', text: change, ...actorOf(end) });
}

/**
 * Leaves a `tool` node whose result is already in the transcript: a preceding `decide` called it.
 */
export function finishDecided(state: RunState, batch: Batch, at: number): RunState {
  const node = currentNode(state);
  if (node?.kind === 'plan') return withReads(state, node, batch);
  if (node?.kind !== 'tool') return state;
  const [result] = batch.results;
  const results = result ? [result] : [];
  return leaveWith(state, node, { ...endOf(state, node, { batch, results }), at });
}

/** Lets the planner continue with the results of its reads. */
function withReads(state: RunState, { save }: { readonly save: string }, batch: Batch): RunState {
  const { graph } = state;
  if (graph === undefined) return state;
  const isEarlier = state.config.revised !== true;
  const plan = noteReads(planIn(graph.values, save), batch, { isEarlier });
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
    const why = state.config.revised ? nodeFailureText(error) : `${error.type}: ${error.message}`;
    const message = `node "${node.name}": ${why}`;
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
    const values = { ...graph.values, [node.save]: resultsOf(state, node, kept) };
    const saved = { ...state, graph: { ...graph, values } };
    const text = doneText({
      values,
      plan: node.plan,
      results: node.save,
      unattended: decidesItself(state),
    });
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

/** How a node of a run has ended. */
interface NodeEnd extends Omit<PlainEnd, 'cause'> {
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
function callsOf(node: GraphNode, graph: GraphState): readonly ToolCall[] {
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
function endOf(state: RunState, node: GraphNode, { batch, results }: Visited): NodeEnd {
  const values = state.graph?.values ?? {};
  if (node.kind === 'confirm') return confirmEnd(state, node, results[0]);
  if (node.kind === 'execute') {
    // All results are saved by action id, across visits.
    const patch = { [node.save]: resultsOf(state, node, results) };
    return { exit: results.every(({ ok }) => ok) ? 'done' : 'some_failed', patch };
  }
  const kept = state.config.revised ? wholeResults(node, results) : results;
  const { cause, ...end } = nodeEnd(node, { calls: batch.calls, results: kept }, values);
  return { ...end, ...(cause?.limit && { limit: cause.limit }) };
}

/**
 * Returns the results of a node. If the node saves what a tool returns, a result that is not here as a whole has
 * failed: later nodes would take its beginning and end for all of it.
 */
function wholeResults(node: GraphNode, results: readonly CallResult[]): readonly CallResult[] {
  const isOfTool = node.kind === 'tool' || (node.kind === 'each' && node.body.kind === 'tool');
  if (!isOfTool || node.save === undefined) return results;
  return results.map((result) => {
    const fault = result.ok ? faultOf(result) : null;
    if (fault === null) return result;
    const message = `the tool was executed, but its result ${fault.what}`;
    return {
      ...result,
      ok: false,
      text: JSON.stringify({ error: { type: fault.type, message } }),
    };
  });
}

/** Returns why a result is not here as a whole; null if it is. */
function faultOf({
  blob,
  lost,
  text,
  output = text,
  artifactName,
}: CallResult): { readonly type: string; readonly what: string } | null {
  if (lost !== undefined) return { type: 'lost', what: `is incomplete (${lost})` };
  if (blob === undefined || output !== text || artifactName !== undefined) return null;
  const what = `of ${formatBytes(blob.bytes)} is too large to be saved; return less, or an artifact`;
  return { type: 'too_large', what };
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
