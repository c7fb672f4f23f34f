import { credentialProblem } from '../core/input/turn-settings.js';
import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { checkLimits, toLimits } from '../core/input/check-limits.js';
import { COMPACTION } from '../core/compaction.js';
import { isObject } from '../core/json.js';
import { authorTextProblem, type AgentTexts } from '../core/text/author-texts.js';
import {
  anyFunction,
  checkOptions,
  expected,
  expectedHidden,
  uniquelyNamed,
  type OptionSchemas,
} from '../validation/check-options.js';
import { duration } from '../validation/durations.js';
import type { McpServer } from '../mcp/mcp-server.js';
import type { Template } from '../prompts/template.js';
import { isTool } from '../tools/registry.js';
import type { Agent, AgentOptions, CalledAgent } from './agent.js';
import { assertRules } from './check-requests.js';
import { checkSettingNames, FILLED } from './check-settings.js';
import type { RememberOptions } from './memory.js';
import type { PromptOptions } from './prompts.js';
import type { RetrieveOptions } from './retriever.js';

/** All answers of a turn stay in one segment of the history. */
const MAX_ATTEMPTS = 100;
const attemptTime = duration({ maxMs: 60 * 60_000, range: 'at most 1 hour' });

const agentName = z
  .string()
  .regex(/^[\w.-]{1,64}$/, 'expected 1 to 64 letters, digits, "_", "-" or "."');
const share = z.number().gt(0).lt(1);

const calledAgent = z.strictObject({
  agent: expected<Agent>('an agent; make it with defineAgent({…})', isAgent),
  as: z.string().optional(),
  description: z.string().optional(),
  parentClose: z.enum(['terminate', 'request_cancel', 'abandon']).optional(),
  prompt: z.string().optional(),
} satisfies OptionSchemas<CalledAgent>);

const retrieveOptions = z.strictObject({
  find: anyFunction,
  timeout: attemptTime.optional(),
} satisfies OptionSchemas<RetrieveOptions>);

const rememberOptions = z.strictObject({
  save: anyFunction,
  timeout: attemptTime.optional(),
} satisfies OptionSchemas<RememberOptions>);

const compactionOptions = z
  .strictObject({ at: share.optional(), keep: share.optional() })
  .refine(
    ({ at = COMPACTION.at, keep = COMPACTION.keep }) => keep < at,
    'expected `keep` below `at`',
  );

const authorText = (name: keyof AgentTexts) =>
  z.string().superRefine((text, context) => {
    const problem = authorTextProblem(name, text);
    if (problem !== null) context.addIssue(problem);
  });
const agentTexts = z.strictObject({
  repair: authorText('repair').optional(),
  closing: authorText('closing').optional(),
  demandCall: authorText('demandCall').optional(),
} satisfies OptionSchemas<AgentTexts>);

/** The name of a setting that a message may give. */
const callSetting = z.string().superRefine((name, context) => {
  const instead = name === 'nativeTools' ? 'give them to the agent' : FILLED[name];
  const filled = instead && `expected no setting that perdure sets; ${instead}`;
  const message = filled ?? credentialProblem(name);
  if (message !== null) context.addIssue({ code: 'custom', message });
});

const promptOptions = z.strictObject({
  text: expected(
    'a text or a template',
    (value) => (typeof value === 'string' && value.trim() !== '') || isTemplate(value),
  ),
  output: z.unknown().optional(),
  tools: z.array(z.string()).optional(),
  settings: z
    .looseObject({})
    .superRefine(checkSettingNames)
    .refine(
      (settings) => !Object.hasOwn(settings, 'nativeTools'),
      'expected no `nativeTools`, because they belong to the agent; give them there',
    )
    .optional(),
  attempts: z.int().min(1).max(MAX_ATTEMPTS).optional(),
} satisfies OptionSchemas<PromptOptions>);

const agentOptions = z.strictObject({
  name: agentName,
  instructions: expected(
    'a text or a template',
    (value) => typeof value === 'string' || isTemplate(value),
  ),
  model: z.string().min(1, 'expected the name of a model; omit it to use PERDURE_MODEL').optional(),
  tools: z.array(expected('a tool; make it with defineTool({…})', isTool)).optional(),
  mcp: uniquelyNamed(
    expectedHidden<McpServer>('an MCP server; make it with mcpServer({…})', isMcpServer),
  ).optional(),
  agents: z
    .array(z.preprocess((given) => (isAgent(given) ? { agent: given } : given), calledAgent))
    .optional(),
  forkFrom: z.array(agentName).optional(),
  description: z.string().optional(),
  toolChoice: z.enum(['auto', 'required', 'none']).optional(),
  toolCalls: z.enum(['parallel', 'sequential', 'first']).optional(),
  limits: z.unknown().optional(),
  onLimit: z.enum(['answer', 'compose', 'fail', 'ask']).optional(),
  settings: z.looseObject({}).superRefine(checkSettingNames).optional(),
  callSettings: z.array(callSetting).optional(),
  output: z.unknown().optional(),
  attempts: z.int().min(1).max(MAX_ATTEMPTS).optional(),
  onInvalid: z.enum(['fail', 'best_effort']).optional(),
  decide: expected(
    '"tools", "schema" or a function',
    (value) => value === 'tools' || value === 'schema' || typeof value === 'function',
  ).optional(),
  onPlainText: z.enum(['respond', 'fail']).optional(),
  toolExposure: z.enum(['all', 'catalog']).optional(),
  retrieve: z
    .preprocess((given) => (typeof given === 'function' ? { find: given } : given), retrieveOptions)
    .optional(),
  remember: z
    .preprocess((given) => (typeof given === 'function' ? { save: given } : given), rememberOptions)
    .optional(),
  compaction: z.preprocess((given) => (given === false ? {} : given), compactionOptions).optional(),
  rules: z.unknown().optional(),
  texts: agentTexts.optional(),
  prompts: z.record(agentName, promptOptions).optional(),
} satisfies OptionSchemas<AgentOptions>);

/** Throws an `InputError` with a line for each fault of an agent's definition. */
export function assertAgentOptions(options: Pick<AgentOptions, 'name' | 'limits' | 'rules'>): void {
  checkOptions('agent', { schema: agentOptions, options });
  const problem = checkLimits(toLimits(options.limits), 'limits');
  if (problem !== null) throw new InputError(`agent "${options.name}": ${problem}`);
  assertRules(options.rules, `agent "${options.name}"`);
}

/** Whether a value was made by `defineAgent`. */
export function isAgent(value: unknown): value is Agent {
  return isObject(value) && isObject(value['tools']) && 'names' in value['tools'];
}

/** Whether instructions are a template and not a string. */
export function isTemplate(instructions: unknown): instructions is Template {
  return isObject(instructions) && 'args' in instructions;
}

function isMcpServer(value: unknown): boolean {
  return isObject(value) && 'connectMs' in value;
}
