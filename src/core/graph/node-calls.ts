import { callsLeft } from '../limits.js';
import { CALLS_USED_UP, DEPTH_REACHED, notExecuted, tooDeep } from '../calls/batch.js';
import { denial } from '../calls/denial.js';
import { deniedCall, type CallResult } from '../calls/call-result.js';
import { sha256Hex } from '../digest.js';
import { canonicalJson, isObject, textField, type Json, type JsonObject } from '../json.js';
import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import type { Batch } from '../turn.js';
import type { EachBody, GraphNode } from './definition.js';
import type { GraphState } from './graph-state.js';
import { planIn, planValue } from '../plan/plan.js';
import { planCalls } from '../plan/plan-batch.js';
import { showPlan } from '../plan/show-plan.js';
import { nodeCallName, visitsOf } from './node-tool.js';
import { evaluate, evaluateText, itemsOf, type Scope } from './values.js';

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
