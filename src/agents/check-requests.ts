import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { isObject } from '../core/json.js';
import { rulesProblem, type Rule } from '../core/requests/rules.js';
import {
  anyFunction,
  checkOptions,
  expectedHidden,
  type OptionSchemas,
} from '../validation/check-options.js';
import { ruleFindings, type RuleFindings } from '../validation/rule-names.js';
import type { Agent } from './agent.js';
import type { NotifyTarget, RequestOptions } from './requests.js';

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
  if (rules.length === 0) return { errors: [], warnings: [] };
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
