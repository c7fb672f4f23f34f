import { CALLS_USED_UP, DEPTH_REACHED, notExecuted, tooDeep } from '../calls/batch.js';
import { denial } from '../calls/open-batch.js';
import type { EachBody, GraphNode } from '../definition/graph-definition.js';
import { showPlan } from '../plan/confirm-plan.js';
import { planCalls, resultsOf } from '../plan/plan-batch.js';
import { planIn, planValue } from '../plan/plan.js';
import { cutValue, doneText } from '../plan/results.js';
import { callsLeft } from '../rules/limits.js';
import { appendMessage } from '../state/change.js';
import type { GraphState, RunState } from '../state/state.js';
import { currentNode, definedTool, nodeCallName, visitsOf } from '../state/turn-definition.js';
import { type Batch, getOpenBatch } from '../state/turn.js';
import {
  type Json,
  type JsonObject,
  type Scope,
  canonicalJson,
  errorIn,
  evaluate,
  evaluateText,
  isObject,
  itemsOf,
  sha256Hex,
  textField,
} from '../text/json.js';
import { type CallResult, deniedCall } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';

/**
 * Maximum characters of arguments for the calls of one visit, because a new segment receives them.
 */
const MAX_BATCH_CHARACTERS = 1_000_000;

/** What a call of a node does: a tool's name or the node's own, and the arguments. */
interface Planned {
  readonly name: string;
  readonly arguments: JsonObject;
}

/** Returns the results that this visit had before it was interrupted. */
function resultsBefore(
  { at, interrupted }: GraphState,
  { name }: GraphNode,
): readonly CallResult[] {
  if (interrupted?.node !== name || interrupted.visit !== at?.visit) return [];
  return interrupted.results;
}

/** Returns why the calls of one visit are too large; null if they are not. */
export function sizeFault(calls: readonly Pick<ToolCall, 'arguments'>[]): string | null {
  const characters = calls.reduce((sum, call) => sum + call.arguments.length, 0);
  if (calls.length < 2 || characters <= MAX_BATCH_CHARACTERS) return null;
  return `all items together have ${characters} characters of arguments, at most ${MAX_BATCH_CHARACTERS} fit`;
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
  const calls = node.kind === 'execute' ? planCalls(node, graph) : visitCalls(node, graph);
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

function visitCalls(node: GraphNode, { values, at }: GraphState): readonly ToolCall[] {
  return planned(node, values).map(({ name, arguments: given }, index): ToolCall => {
    const json = canonicalJson(given);
    const place = `${node.name}_${at?.visit ?? 1}_${index}`;
    return { id: `node_${place}`, name, arguments: json, digest: sha256Hex(json), node: node.name };
  });
}

function planned(node: GraphNode, values: JsonObject): readonly Planned[] {
  const scope = { state: values };
  switch (node.kind) {
    case 'run':
    case 'route':
      return [{ name: nodeCallName(node.name), arguments: { state: values } }];
    case 'agent':
    case 'graph':
      return [toCall(node.name, node, scope)];
    case 'confirm':
      return [{ name: nodeCallName(node.name), arguments: questionOf(node, values) }];
    case 'tool':
      return [{ name: node.tool, arguments: toObject(evaluate(node.arguments ?? {}, scope)) }];
    case 'each': {
      const { body, name } = node;
      const items = itemsOf(node.over, values) ?? [];
      const state = body.kind === 'run' ? withoutList(values, node.over) : values;
      return items.map((item) => toCall(name, body, { state, item }));
    }
    case 'choose':
    case 'decide':
    case 'plan':
    case 'execute':
    case 'answer':
      return [];
  }
}

/**
 * Returns the question for a person. It includes the plan, so the decision is bound to every
 * action.
 */
function questionOf(
  { show, plan: field }: Extract<GraphNode, { kind: 'confirm' }>,
  values: JsonObject,
): JsonObject {
  const text = evaluateText(show, { state: values });
  if (field === undefined) return { question: text, options: ['yes', 'no'] };
  const plan = planIn(values, field);
  const question = [...(text === '' ? [] : [text, '']), showPlan(plan)].join('\n');
  return { question, options: ['yes', 'no'], actions: planValue(plan)['actions'] };
}

/**
 * Returns the state without the list for an item's function; otherwise, the list would be recorded
 * once per item.
 */
function withoutList(values: JsonObject, over: Json): JsonObject {
  const path = isObject(over) ? textField(over, '$path') : '';
  return path === '' ? values : without(values, path.split('.'));
}

function without(values: JsonObject, [field = '', ...inner]: readonly string[]): JsonObject {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]): [string, Json][] => {
      if (name !== field) return [[name, value ?? null]];
      if (inner.length > 0 && isObject(value)) return [[name, without(value, inner)]];
      return [];
    }),
  );
}

function toCall(
  node: string,
  body: EachBody | Extract<GraphNode, { kind: 'agent' | 'graph' }>,
  scope: Scope,
): Planned {
  const name = nodeCallName(node);
  switch (body.kind) {
    case 'run':
      return { name, arguments: { state: scope.state, item: scope.item ?? null } };
    case 'agent': {
      if (body.prompt === undefined) {
        return { name, arguments: { message: evaluateText(body.message, scope) } };
      }
      const given = body.args !== undefined && { promptArgs: evaluate(body.args, scope) };
      return { name, arguments: { ...given } };
    }
    case 'graph':
      return { name, arguments: { input: evaluate(body.input, scope) } };
    case 'tool':
      return { name: body.tool, arguments: toObject(evaluate(body.arguments, scope)) };
  }
}

/** Returns arguments as an object. Any other value is passed to the tool, which refuses it. */
function toObject(value: Json): JsonObject {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the only other object is a list
  return isRecord ? (value as JsonObject) : { value };
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
