import { z } from 'zod';
import { isAgent } from '../agents/options.js';
import type { Agent } from '../agents/agent.js';
import { show } from '../core/text/format-value.js';
import { isTool } from '../tools/registry.js';
import type { Tool } from '../tools/tool.js';
import { durableMilliseconds, expected, milliseconds } from '../validation/check-options.js';
import type { AuthorFunction } from './node-function.js';

const MAX_ATTEMPTS = 100;
const MAX_VISITS = 10_000;
const MAX_LABEL_CHARACTERS = 200;
const MAX_AT_ONCE = 50;
const MAX_ACTIONS = 500;

const UNITS: ReadonlyMap<string, number> = new Map([
  ['second', 1_000],
  ['minute', 60_000],
  ['hour', 3_600_000],
  ['day', 86_400_000],
  ['week', 604_800_000],
]);

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
  timeoutMs: milliseconds.optional(),
};
const save = { save: z.string().optional() };

const EXPECTED_EXPIRY = 'expected ms or a duration such as "2 days"';
const expires = z
  .union(
    [
      durableMilliseconds,
      z.string().transform((text, context) => {
        const [, count, unit = ''] = /^(\d+(?:\.\d+)?) (\w+?)s?$/.exec(text) ?? [];
        const ms = Math.round(Number(count) * (UNITS.get(unit) ?? Number.NaN));
        if (durableMilliseconds.safeParse(ms).success) return ms;
        context.addIssue({ code: 'custom', message: `${EXPECTED_EXPIRY}, got ${show(text)}` });
        return z.NEVER;
      }),
    ],
    EXPECTED_EXPIRY,
  )
  .optional();

/** The options of each kind of node. A caller may be JavaScript, so types alone do not hold. */
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
    timeoutMs: milliseconds.optional(),
    ...save,
    ...common,
  }),
  graph: z.strictObject({
    graph: agentName,
    input: authorFunction,
    timeoutMs: milliseconds.optional(),
    ...save,
    ...common,
  }),
  decide: z.strictObject({
    tools: z.array(z.string()).optional(),
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
    timeoutMs: milliseconds.optional(),
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
    expires,
    ...common,
  }),
};

/** The checked options of one kind of node. */
export type OptionsOf<Kind extends keyof typeof NODE_OPTIONS> = z.output<
  (typeof NODE_OPTIONS)[Kind]
>;
