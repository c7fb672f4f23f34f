import {
  type Json,
  type JsonObject,
  type Scope,
  errorIn,
  evaluate,
  evaluateText,
  isObject,
  itemsOf,
  textField,
} from '../text/json.js';
import type { EachBody, WorkerNode } from './node-data.js';
import type { ToolDefinition } from './tool-definition.js';

// What nodes call, and how they end: pure functions of their data, the state, and results.

/** What a call of a node does: a tool's name, or null for the node's own work; and the arguments. */
export interface Planned {
  readonly tool: string | null;
  readonly arguments: JsonObject;
}

/** The part of a call's result that decides how a node ends. */
export interface Ended {
  readonly ok: boolean;
  readonly text: string;
  readonly output?: Json;
  readonly artifactName?: string;
}

/** How a node has ended. `error` is for an exit `failed`. */
export interface NodeEnd<Result = unknown> {
  readonly exit: string;
  readonly patch?: JsonObject;
  readonly error?: { readonly type: string; readonly message: string };
  /** The failed result because of which the node has failed. */
  readonly cause?: Result;
  /** The answer of the agents or the graph that the node called. */
  readonly said?: string;
}

/** The calls of a visit, and their results in the same order. */
export interface Visited<Result extends Ended> {
  readonly calls: readonly { readonly arguments: string }[];
  readonly results: readonly Result[];
}

/**
 * Maximum characters of arguments for the calls of one visit, because a new segment receives them.
 */
const MAX_BATCH_CHARACTERS = 1_000_000;

/** Returns why the calls of one visit are too large; null if they are not. */
export function sizeFault(calls: Visited<Ended>['calls']): string | null {
  const characters = calls.reduce((sum, call) => sum + call.arguments.length, 0);
  if (calls.length < 2 || characters <= MAX_BATCH_CHARACTERS) return null;
  return `all items together have ${characters} characters of arguments, at most ${MAX_BATCH_CHARACTERS} fit`;
}

/** Returns the end of a node's function from the worker's record: see `NodeResult`. */
function functionEnd<Result extends Ended>(
  { kind }: { readonly kind: 'run' | 'route' },
  result: Result | undefined,
): NodeEnd<Result> {
  if (!result?.ok) return failedEnd(result);
  const { output } = result;
  const { exit, patch } = isObject(output) ? output : {};
  return {
    exit: kind === 'route' && typeof exit === 'string' ? exit : 'done',
    ...(isObject(patch) && { patch }),
  };
}

/** The work of a node that is a function of the worker: a call of it with the state. */
export const functionWork = {
  tool: ({ timeoutMs, attempts }: WorkerNode) => ({ timeoutMs, attempts }),
  calls: (_node: WorkerNode, state: JsonObject) => [{ tool: null, arguments: { state } }],
  end: <R extends Ended>(
    node: { readonly kind: 'run' | 'route' },
    { results: [result] }: Visited<R>,
  ) => functionEnd(node, result),
};

export function toolEnd<Result extends Ended>(
  node: { readonly save?: string },
  result: Result | undefined,
): NodeEnd<Result> {
  if (!result?.ok) return failedEnd(result);
  return { exit: 'done', patch: saved(node.save, toolValue(result)) };
}

function failedEnd<Result extends Ended>(result: Result | undefined): NodeEnd<Result> {
  const error = errorIn(result?.text ?? '');
  return { exit: 'failed', error, ...(result && { cause: result }) };
}

export function agentEnd<Result extends Ended>(
  node: { readonly save?: string },
  result: Result | undefined,
): NodeEnd<Result> {
  return result?.output === undefined ? failedEnd(result) : calledEnd(node, result.output);
}

/** Returns the end of a node that called an agent or a graph. */
function calledEnd(node: { readonly save?: string }, output: Json): NodeEnd<never> {
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

/** Returns the end of an `each` node. Items with identical calls each have a result. */
export function eachEnd<Result extends Ended>(
  node: { readonly over: Json; readonly body: EachBody; readonly save?: string },
  state: JsonObject,
  { calls, results }: Visited<Result>,
): NodeEnd<Result> {
  if (itemsOf(node.over, state) === null) {
    const message = 'the value to go over is not a list, or has more than 1,000 items';
    return { exit: 'failed', error: { type: 'no_list', message } };
  }
  const fault = sizeFault(calls);
  if (fault !== null) return { exit: 'failed', error: { type: 'too_large', message: fault } };
  const { kind } = node.body;
  const isOwn = kind !== 'tool';
  const ends = results.map((result) => {
    const end = isOwn && kind !== 'run' ? calledEnd(node, result.output ?? null) : null;
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
function valueOf(result: Ended, isOwn: boolean): Json {
  const { output } = result;
  if (!isOwn || !isObject(output)) return toolValue(result);
  const { value, answer } = output;
  return value ?? answer ?? null;
}

/** Returns a patch with one field; empty if no field is named. */
export function saved(field: string | undefined, value: Json): JsonObject {
  return field === undefined ? {} : { [field]: value };
}

/** Returns a tool's value, or the name of the artifact that it returned. */
function toolValue({ output, artifactName, text }: Ended): Json {
  return output ?? artifactName ?? text;
}

/** Returns how a node calls an agent or a graph, which ends when the caller's turn is canceled. */
export function agentTool(agent: string, prompt?: string): Partial<ToolDefinition> {
  const called = { agent, parentClose: 'request_cancel' } as const;
  return { kind: 'agent', calls: { ...called, ...(prompt !== undefined && { prompt }) } };
}

/** Returns the call for a node's agent, graph, or tool, or for one item of an `each`. */
export function plannedCall(body: EachBody, scope: Scope): Planned {
  switch (body.kind) {
    case 'run':
      return { tool: null, arguments: { state: scope.state, item: scope.item ?? null } };
    case 'agent': {
      if (body.prompt === undefined)
        return { tool: null, arguments: { message: evaluateText(body.message, scope) } };
      const given = body.args !== undefined && { promptArgs: evaluate(body.args, scope) };
      return { tool: null, arguments: { ...given } };
    }
    case 'graph':
      return { tool: null, arguments: { input: evaluate(body.input, scope) } };
    case 'tool':
      return { tool: body.tool, arguments: toObject(evaluate(body.arguments, scope)) };
  }
}

/** Returns the calls of an `each` node, in the order of the items. */
export function itemCalls(
  { body, over }: { readonly over: Json; readonly body: EachBody },
  values: JsonObject,
): readonly Planned[] {
  const state = body.kind === 'run' ? withoutList(values, over) : values;
  return (itemsOf(over, values) ?? []).map((item) => plannedCall(body, { state, item }));
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

/** Returns arguments as an object. Any other value is passed to the tool, which refuses it. */
function toObject(value: Json): JsonObject {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the only other object is a list
  return isRecord ? (value as JsonObject) : { value };
}
