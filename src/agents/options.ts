import { z } from 'zod';
import { type AgentTexts, authorTextProblem } from '../core/definition/definition.js';
import { type Rule, rulesProblem } from '../core/definition/rules.js';
import { InputError } from '../core/errors.js';
import { checkLimits, toLimits } from '../core/input/limits.js';
import {
  CREDENTIAL_PROBLEM,
  credentialProblem,
  credentialsIn,
} from '../core/input/turn-settings.js';
import { COMPACTION } from '../core/rules/compaction.js';
import { isObject, isTooDeep } from '../core/text/json.js';
import { MAX_DURABLE_MS } from '../core/text/text.js';
import type { McpServer } from '../mcp/mcp-server.js';
import type { Template } from '../prompts/template.js';
import { isTool } from '../tools/tool.js';
import {
  type OptionSchemas,
  anyFunction,
  checkOptions,
  duration,
  expected,
  expectedHidden,
  uniquelyNamed,
} from '../validation/check-options.js';
import { type RuleFindings, ruleFindings } from '../validation/rule-names.js';
import { SETTINGS_ELSEWHERE } from '../validation/unknown-option.js';
import type {
  NotifyTarget,
  RememberOptions,
  RequestOptions,
  RetrieveOptions,
} from './agent-parts.js';
import type { Agent, AgentOptions, CalledAgent } from './agent.js';
import { calledEntry, givenAgent, isMcpServer } from './given-agent.js';
import type { PromptOptions } from './prompts.js';

/** The parts of an agent that rules can be about. */
type RuledAgent = Pick<Agent, 'tools'> & { readonly mcp: readonly { readonly name: string }[] };

const notifyTarget = z.strictObject({
  url: expectedHidden('an address such as "https://hooks.example/perdure"', isHttpUrl),
  secretEnv: expectedHidden(
    'the name of an environment variable such as "PERDURE_WEBHOOK_SECRET", not its value',
    (value) => typeof value === 'string' && /^[A-Za-z_]\w*$/.test(value),
  ),
} satisfies OptionSchemas<NotifyTarget>);

/** Replaces a function during validation, because a function needs no check. */
const ANY_TARGET: NotifyTarget = { url: 'https://hooks.example', secretEnv: 'NAME' };

/** The schemas of `RequestOptions`. `assertRules` checks the rules. */
export const requestOptions = {
  rules: z.unknown().optional(),
  mayDecide: anyFunction.optional(),
  notify: z
    .preprocess((given) => (typeof given === 'function' ? ANY_TARGET : given), notifyTarget)
    .optional(),
} satisfies OptionSchemas<RequestOptions>;

const requestSchema = z.strictObject(requestOptions);

/**
 * Throws an `InputError` with a line for each fault. `subject` starts the message and names the
 * owner of the options.
 */
export function assertRequestOptions(options: unknown, subject: string): void {
  checkOptions(subject, { schema: requestSchema, options });
  assertRules(isObject(options) ? options['rules'] : undefined, subject);
}

/**
 * Throws an `InputError` if these are not rules. `subject` starts the message and names the owner
 * of the rules.
 */
export function assertRules(rules: unknown, subject: string): void {
  const problem = rulesProblem(rules);
  if (problem !== null) throw new InputError(`${subject}: ${problem}`);
}

/**
 * Throws an `InputError` with a line for each rule that can apply to no call, because no tool has the
 * name, effect, or argument. `subject` starts each line and names the owner of the rules.
 */
export function assertRuleNames(
  rules: readonly Rule[] | undefined,
  agents: readonly RuledAgent[],
  subject: string,
): void {
  const { errors } = rulesOn(agents, rules);
  if (errors.length > 0)
    throw new InputError(errors.map((line) => `${subject}: ${line}`).join('\n'));
}

/** Returns what rules name that no call of these agents can match, or that nothing matches yet. */
export function rulesOn(
  agents: readonly RuledAgent[],
  rules: readonly Rule[] | undefined = [],
): RuleFindings {
  if (rules.length === 0) return { errors: [], warnings: [], unchecked: [] };
  const known = {
    tools: agents.flatMap(({ tools }) => tools.tools),
    unlisted: agents.flatMap(({ mcp }) => mcp.map(({ name }) => name)),
  };
  return ruleFindings(rules, known);
}

function isHttpUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  return ['http:', 'https:'].includes(new URL(value).protocol);
}

/**
 * Settings that would have no effect, because perdure sets them itself, and what to use instead.
 */
const FILLED: Readonly<Record<string, string>> = {
  model: 'use `model`',
  messages: 'use `instructions`, and the messages of the run',
  input: 'use `instructions`, and the messages of the run',
  instructions: 'use `instructions`',
  tools: 'use `tools`, or `settings.nativeTools` for tools of the provider',
  tool_choice: 'use `toolChoice`',
  response_format: 'use `output`',
  logprobs: 'use `output: classify({ … })`',
  top_logprobs: 'use `output: classify({ … })`',
  stream: 'replies are streamed wherever the model can; set `capabilities.streaming` of the model',
  stream_options: 'perdure always requests the usage',
  n: 'a step takes one reply; start several runs',
};

/** Options of other libraries that are no settings, and what to use instead. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  modelName: 'use `model` of the agent',
  modelId: 'use `model` of the agent',
  model_name: 'use `model` of the agent',
  toolChoice: 'use `toolChoice` of the agent',
  responseFormat: 'use `output` of the agent',
  system: 'use `instructions` of the agent',
  prompt: 'use `instructions` of the agent, and the messages of the run',
  streaming: 'use `capabilities.streaming` of the model',
  providerOptions: "write the provider's own settings directly into `settings`",
  modelKwargs: "write the provider's own settings directly into `settings`",
  model_kwargs: "write the provider's own settings directly into `settings`",
  extra_body: "write the provider's own settings directly into `settings`",
  extraBody: "write the provider's own settings directly into `settings`",
  maxSteps: 'use `limits.turn.steps` of the agent',
  maxTurns: 'use `limits.turn.steps` of the agent',
  stopWhen: 'use `limits` of the agent',
  abortSignal: 'use `client.cancel`',
  callbacks: 'use the events of the run',
  timeout: 'use `timeout` of the entry in `models`',
};

/**
 * Adds an issue for each setting that perdure sets itself, that is an option of a client or of
 * another library, or that would take a credential into the history and to the provider. Names
 * count in any case, with or without `_`; a value is never shown.
 */
function checkSettingNames(settings: object, context: z.RefinementCtx): void {
  const add = (path: (string | number)[], message: string): void =>
    context.addIssue({
      code: 'custom',
      path,
      message,
      // A credential is never shown.
      params: { secret: message === CREDENTIAL_PROBLEM },
    });
  if (isTooDeep(settings)) {
    add([], 'expected at most 200 levels');
    return;
  }
  for (const name of Object.keys(settings)) {
    const why = reasonAgainst(name);
    if (why !== null) add([name], why);
  }
  for (const path of credentialsIn(settings)) {
    // A setting itself has its reason already.
    if (path.length > 1) add([...path], CREDENTIAL_PROBLEM);
  }
}

function reasonAgainst(name: string): string | null {
  const own = (table: Readonly<Record<string, string>>): string | undefined =>
    Object.hasOwn(table, name) ? table[name] : undefined;
  const filled = own(FILLED);
  if (filled !== undefined) {
    return `expected no such setting, because perdure sets it; ${filled}`;
  }
  const credential = credentialProblem(name);
  if (credential !== null) return credential;
  const word = own(SETTINGS_ELSEWHERE);
  if (word !== undefined) {
    return `expected the name that the setting has here or at the provider, got one of another library; write \`${word}\``;
  }
  const elsewhere = own(ELSEWHERE);
  return elsewhere === undefined
    ? null
    : `expected a setting of the provider, got an option of another library; ${elsewhere}`;
}

/** All answers of a turn stay in one segment of the history. */
const MAX_ATTEMPTS = 100;
const attemptTime = duration({ maxMs: 60 * 60_000, range: 'at most 1 hour' });
/** Workers look every hour. */
const retention = duration({
  minMs: 60 * 60_000,
  maxMs: MAX_DURABLE_MS,
  range: 'at least 1 hour, at most 36500 days',
});

const agentName = z
  .string()
  .regex(/^[\w.-]{1,64}$/, 'expected 1 to 64 letters, digits, "_", "-" or "."');
const share = z.number().gt(0).lt(1);

const calledAgent = z.strictObject({
  agent: givenAgent,
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

/** Maximum models of an agent, with its fallbacks. */
const MAX_MODELS = 8;

function areModels(value: unknown): boolean {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  const isNamed = names.every((name) => typeof name === 'string' && name.trim() !== '');
  const isSome = names.length >= 1 && names.length <= MAX_MODELS;
  return isNamed && isSome && new Set(names).size === names.length;
}

const agentOptions = z.strictObject({
  name: agentName,
  instructions: expected(
    'a text or a template',
    (value) => typeof value === 'string' || isTemplate(value),
  ),
  model: expected(
    `the name of a model, or a list of 1 to ${MAX_MODELS} different names; omit it to use PERDURE_MODEL`,
    areModels,
  ).optional(),
  tools: z.array(expected('a tool; make it with defineTool({…})', isTool)).optional(),
  mcp: uniquelyNamed(
    expectedHidden<McpServer>('an MCP server; make it with mcpServer({…})', isMcpServer),
  ).optional(),
  agents: z
    .array(z.preprocess((given: Agent | CalledAgent) => calledEntry(given), calledAgent))
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
  retention: retention.optional(),
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

/** Whether instructions are a template and not a string. */
export function isTemplate(instructions: unknown): instructions is Template {
  return isObject(instructions) && 'args' in instructions;
}
