import { z } from 'zod';
import type { Agent, NodeFunction, NodeResult } from '../agents/agent.js';
import { isAgent } from '../agents/options.js';
import { type Json, isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { type NodeContext, type Tool, isTool } from '../tools/tool.js';
import { durableDuration, expected, timerDuration } from '../validation/check-options.js';
import { type StateFields, checkedPatch, parsedState } from './state-schema.js';
import { returnedJson } from './values.js';

/** An author's function; its own types are checked where it is written. */
export type AuthorFunction = (...given: readonly unknown[]) => unknown;

/** Returns the function of a `run` node. */
export function toRunNode(where: string, fields: StateFields, run: AuthorFunction): NodeFunction {
  return async ({ state }, context): Promise<NodeResult> => {
    const returned = await run(await parsedState(where, fields, state), context);
    return { patch: await checkedPatch(where, fields, returned) };
  };
}

/** Returns the function of a `route` node. */
export function routeFunction(
  where: string,
  { fields, exits }: { readonly fields: StateFields; readonly exits: readonly string[] },
  run: AuthorFunction,
): NodeFunction {
  return async ({ state }, context): Promise<NodeResult> => {
    const chosen = new Set<unknown>();
    const exit = (name: unknown, patch: unknown): unknown => {
      const choice = Object.freeze({ exit: name, patch });
      chosen.add(choice);
      return choice;
    };
    const returned = await run(await parsedState(where, fields, state), contextWith(context, exit));
    if (!isObject(returned) || !chosen.has(returned)) {
      throw new Error(
        `${where}: expected \`return exit('${exits[0] ?? ''}')\`, got ${show(returned)}`,
      );
    }
    const name = returned['exit'];
    if (typeof name !== 'string' || !exits.includes(name)) {
      throw new Error(`${where} left through ${show(name)}; its exits are ${exits.join(', ')}`);
    }
    return { exit: name, patch: await checkedPatch(where, fields, returned['patch']) };
  };
}

function contextWith(context: NodeContext, exit: unknown): object {
  return { ...context, exit };
}

/** Returns the function of an `each` node, which computes the value for one item. */
export function eachFunction(
  where: string,
  fields: StateFields,
  run: AuthorFunction,
): NodeFunction {
  return async ({ state, item }, context): Promise<NodeResult> => {
    const returned = await run(await parsedState(where, fields, state), item, context);
    const value: Json = returned === undefined ? null : returnedJson(returned, `${where} returned`);
    return { value };
  };
}

const MAX_ATTEMPTS = 100;
const MAX_VISITS = 10_000;
const MAX_LABEL_CHARACTERS = 200;
const MAX_AT_ONCE = 50;
const MAX_ACTIONS = 500;

const authorFunction = expected<AuthorFunction>(
  'a function',
  (value) => typeof value === 'function',
);
const agentName = expected<string | Agent>(
  'the name of an agent or an agent',
  (value) => isAgent(value) || (typeof value === 'string' && /^[\w.-]{1,64}$/.test(value)),
);
const toolName = expected<string | Tool>(
  'the name of a tool or a tool; make it with defineTool({…})',
  (value) => isTool(value) || (typeof value === 'string' && value !== ''),
);

const outputType = expected<z.ZodType>(
  'a zod type of the reply, such as z.object({…})',
  (value) => value instanceof z.ZodType,
);

const common = {
  label: z.string().min(1).max(MAX_LABEL_CHARACTERS).optional(),
  maxVisits: z.int().min(1).max(MAX_VISITS).optional(),
};
const worker = {
  attempts: z.int().min(1).max(MAX_ATTEMPTS).optional(),
  timeout: timerDuration.optional(),
};
const save = { save: z.string().optional() };

/** The options of each kind of node. A caller may be JavaScript, so types alone are not enough. */
export const NODE_OPTIONS = {
  run: z.strictObject({ run: authorFunction, ...worker, ...common }),
  route: z.strictObject({
    exits: z.array(z.string()).min(1).max(MAX_AT_ONCE),
    run: authorFunction,
    ...worker,
    ...common,
  }),
  choose: z.strictObject({ on: authorFunction, ...common }),
  agent: z.strictObject({
    agent: agentName,
    message: authorFunction.optional(),
    prompt: z.string().optional(),
    args: authorFunction.optional(),
    continues: z.literal(true).optional(),
    timeout: timerDuration.optional(),
    ...save,
    ...common,
  }),
  graph: z.strictObject({
    graph: agentName,
    input: authorFunction,
    timeout: timerDuration.optional(),
    ...save,
    ...common,
  }),
  decide: z.strictObject({
    tools: z.array(z.string()).optional(),
    toolChoice: z.enum(['auto', 'required']).optional(),
    message: authorFunction.optional(),
    output: outputType.optional(),
    attempts: z.int().min(1).max(MAX_ATTEMPTS).optional(),
    ...save,
    ...common,
  }),
  plan: z.strictObject({
    save: z.string(),
    answer: z.string().optional(),
    planning: z.enum(['schema', 'catalog']).optional(),
    maxActions: z.int().min(1).max(MAX_ACTIONS).optional(),
    attempts: z.int().min(1).max(MAX_ATTEMPTS).optional(),
    ...common,
  }),
  execute: z.strictObject({
    plan: z.string(),
    save: z.string(),
    atOnce: z.int().min(1).max(MAX_AT_ONCE).optional(),
    timeout: timerDuration.optional(),
    onFailedDependency: z.enum(['skip', 'fail', 'null']).optional(),
    ...common,
  }),
  answer: z.strictObject({
    save: z.string(),
    plan: z.string().optional(),
    results: z.string().optional(),
    ...common,
  }),
  tool: z.strictObject({
    tool: toolName,
    arguments: authorFunction.optional(),
    ...worker,
    ...save,
    ...common,
  }),
  each: z.strictObject({
    over: authorFunction,
    atOnce: z.int().min(1).max(MAX_AT_ONCE).optional(),
    run: authorFunction.optional(),
    agent: agentName.optional(),
    message: authorFunction.optional(),
    prompt: z.string().optional(),
    args: authorFunction.optional(),
    graph: agentName.optional(),
    input: authorFunction.optional(),
    tool: toolName.optional(),
    arguments: authorFunction.optional(),
    ...worker,
    ...save,
    ...common,
  }),
  confirm: z.strictObject({
    show: authorFunction.optional(),
    plan: z.string().optional(),
    expires: durableDuration.optional(),
    ...common,
  }),
};

/** The checked options of one kind of node. */
export type OptionsOf<Kind extends keyof typeof NODE_OPTIONS> = z.output<
  (typeof NODE_OPTIONS)[Kind]
>;
