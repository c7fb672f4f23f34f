import { isObject } from '../text/json.js';
import { type Duration, MAX_DURABLE_MS, show, toMs } from '../text/text.js';
import {
  type Predicate,
  holds,
  matchesGlob,
  predicateProblem,
  predicateText,
} from './predicate.js';
import type { Effect } from './tool-definition.js';

/**
 * Who may decide: the one who asked for the turn, anyone else, or one of these names. `group:ops` is
 * whoever an interface has verified as a member of the group `ops`.
 */
export type Deciders = 'requester' | 'not_requester' | readonly string[];

const MAX_NAMES = 50;
const MAX_NAME_CHARACTERS = 200;

/** The person who decides, and the people behind the turn. */
export interface Deciding {
  readonly by: string | undefined;
  /** The groups of that person, as an interface has verified them. */
  readonly groups?: readonly string[] | undefined;
  /** All who have sent messages for the turn, and for the turns of its callers. */
  readonly requesters: readonly string[];
  /** The senders of messages that have not joined the turn yet. They do not count as requesters. */
  readonly joining?: readonly string[];
  /** The sender of one of these messages is unknown, so anyone could be that sender. */
  readonly anonymous?: boolean;
}

/**
 * Returns why this person may not decide, or null. No one may decide if the deciders are none of
 * these, such as a word of another version.
 */
export function deciderProblem(
  deciders: readonly Deciders[],
  { by, groups = [], requesters, joining = [], anonymous = false }: Deciding,
): string | null {
  if (deciders.length === 0) return null;
  if (by === undefined) {
    return `by: expected ${decidersText(deciders)}, got none; pass \`by\``;
  }
  const allowed = deciders.every((each) => {
    if (each === 'requester') return requesters.includes(by);
    // Without the requester's name, the run cannot tell whether another person decides.
    if (each === 'not_requester') {
      return !anonymous && requesters.length > 0 && ![...requesters, ...joining].includes(by);
    }
    return Array.isArray(each) && each.some((name) => isNamed(name, by, groups));
  });
  if (allowed) return null;
  const isUnknown =
    (requesters.length === 0 && deciders.includes('requester')) ||
    ((requesters.length === 0 || anonymous) && deciders.includes('not_requester'));
  const began =
    requesters.length === 0 ? 'it began without `by`' : 'one of its messages has no `by`';
  const hint = isUnknown ? `; the run does not know its requester, because ${began}` : '';
  return `by: expected ${decidersText(deciders)}, got ${show(by)}${hint}`;
}

const GROUP = 'group:';

/** Whether a name in a list of deciders means this person. A person who is called as a group is none. */
function isNamed(name: unknown, by: string, groups: readonly string[]): boolean {
  if (typeof name !== 'string') return false;
  return name.startsWith(GROUP) ? groups.includes(name.slice(GROUP.length)) : name === by;
}

/** Returns who may decide, in words. */
export function decidersText(deciders: readonly Deciders[]): string {
  if (deciders.length === 0) return 'anyone';
  return deciders.map(oneText).join(', and also ');
}

function oneText(deciders: Deciders): string {
  if (deciders === 'requester') return 'the requester';
  if (deciders === 'not_requester') return 'anyone but the requester';
  if (!Array.isArray(deciders)) return `no one, since the deciders ${show(deciders)} are unknown`;
  return deciders.length === 1 ? JSON.stringify(deciders[0]) : `one of ${deciders.join(', ')}`;
}

/** Returns what is wrong with a set of deciders, or null. */
export function decidersProblem(value: unknown, path: string): string | null {
  if (value === undefined || value === 'requester' || value === 'not_requester') return null;
  const fits =
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MAX_NAMES &&
    value.every(
      (name) => typeof name === 'string' && name !== '' && name.length <= MAX_NAME_CHARACTERS,
    );
  if (fits) return null;
  return `${path}: expected "requester", "not_requester", or 1 to ${MAX_NAMES} names, got ${show(value)}`;
}

/**
 * A rule about tool calls, as data. Rules can be part of a worker's configuration, an agent, and a
 * run's input. All of them apply: `deny` beats `ask`, and `ask` beats `allow`, in any order and at
 * any level. A lower level can therefore only be stricter than a higher one.
 *
 * @example
 * ```ts
 * import type { Rule } from 'perdure';
 *
 * export const rules: readonly Rule[] = [
 *   { tool: 'refund', where: { op: 'over', path: 'euros', value: 50 }, then: 'ask', deciders: 'not_requester' },
 *   { tool: 'delete_*', then: 'deny' },
 * ];
 * ```
 */
export interface Rule {
  /** The tool's name, or a glob: `*` is any characters, `?` one. */
  readonly tool: string;
  /** Only calls of tools with this effect. Default: any effect. */
  readonly effect?: Effect;
  /** Only calls whose arguments satisfy this predicate. Default: any arguments. */
  readonly where?: Predicate;
  readonly then: 'allow' | 'ask' | 'deny';
  /** For `ask`: who may decide; default: anyone who may send updates to the run. */
  readonly deciders?: Deciders;
  /** For `ask`: the time after which the request is denied, as a `Duration`; default: never. */
  readonly expires?: Duration;
}

/** The rules' verdict on one call. An allowed call has none. */
export interface Verdict {
  readonly then: 'ask' | 'deny';
  /** For people, and for the model: the rule in words. */
  readonly why: string;
  /** Who may decide; absent: anyone. */
  readonly deciders?: readonly Deciders[];
  /** Milliseconds. */
  readonly expires?: number;
}

const MAX_RULES = 200;
const MAX_TOOL_CHARACTERS = 200;
const MAX_WHY_CHARACTERS = 300;

/** Returns the verdict of the strictest rules that apply to a call; null if they allow it. */
export function ruleVerdict(
  rules: readonly Rule[],
  call: { readonly tool: string; readonly effect: Effect; readonly value: unknown },
): Verdict | null {
  const verdicts = rules.flatMap((rule): readonly Verdict[] => {
    const { then, deciders, expires } = rule;
    if (then === 'allow' || !applies(rule, call)) return [];
    const why = ruleText(rule).slice(0, MAX_WHY_CHARACTERS);
    const limits = {
      ...(deciders && { deciders: [deciders] }),
      ...(expires && { expires: toMs(expires) }),
    };
    return [{ then, why, ...(then === 'ask' && limits) }];
  });
  return strictest(verdicts);
}

function applies(
  rule: Rule,
  { tool, effect, value }: { tool: string; effect: Effect; value: unknown },
): boolean {
  if (!matchesGlob(tool, rule.tool)) return false;
  if (rule.effect !== undefined && rule.effect !== effect) return false;
  return rule.where === undefined || holds(rule.where, value);
}

/** Returns a verdict that is as strict as all of these together; null if there are none. */
export function strictest(verdicts: readonly (Verdict | null)[]): Verdict | null {
  const given = verdicts.filter((verdict) => verdict !== null);
  const denied = given.find(({ then }) => then === 'deny');
  if (denied !== undefined) return { then: 'deny', why: denied.why };
  const [first] = given;
  if (first === undefined) return null;
  const expires = Math.min(...given.map((verdict) => verdict.expires ?? Infinity));
  const all = given.flatMap(({ deciders = [] }) => deciders);
  const deciders = all.filter(
    (one, index) => all.findIndex((other) => sameDeciders(one, other)) === index,
  );
  const whys = [...new Set(given.map(({ why }) => why))];
  return {
    then: 'ask',
    why: whys.join('; ').slice(0, MAX_WHY_CHARACTERS),
    ...(deciders.length > 0 && { deciders }),
    ...(expires !== Infinity && { expires }),
  };
}

/** Whether a verdict requires nothing beyond an earlier request's deciders. */
export function asksNoMore(verdict: Verdict | null, than: readonly Deciders[]): boolean {
  if (verdict === null) return true;
  if (verdict.then === 'deny') return false;
  return (verdict.deciders ?? []).every((one) => than.some((other) => sameDeciders(one, other)));
}

function sameDeciders(one: Deciders, other: Deciders): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function ruleText({ tool, effect, where, then }: Rule): string {
  const kind = effect === undefined ? '' : ` with effect ${effect}`;
  const when = where === undefined ? '' : ` where ${predicateText(where)}`;
  return `rule: ${then} ${tool}${kind}${when}`;
}

const FIELDS = ['tool', 'effect', 'where', 'then', 'deciders', 'expires'];

/** Returns what is wrong with a list of rules, or null. `path`: the field that holds the list. */
export function rulesProblem(value: unknown, path = 'rules'): string | null {
  if (value === undefined) return null;
  if (!Array.isArray(value) || value.length > MAX_RULES) {
    return `${path}: expected a list of at most ${MAX_RULES} rules, got ${show(value)}; ${EXAMPLE}`;
  }
  for (const [index, rule] of value.entries()) {
    const problem = ruleProblem(rule, `${path}[${index}]`);
    if (problem !== null) return problem;
  }
  return null;
}

function isExpiry(given: unknown): boolean {
  const ms = typeof given === 'number' || typeof given === 'string' ? toMs(given) : Number.NaN;
  return Number.isInteger(ms) && ms > 0 && ms <= MAX_DURABLE_MS;
}

/** Returns rules as a run pins them: what expires does so after a number of milliseconds. */
export function rulesInMs(rules: readonly Rule[]): readonly Rule[] {
  return rules.map((rule) =>
    rule.expires === undefined ? rule : { ...rule, expires: toMs(rule.expires) },
  );
}

const EXAMPLE = 'give for example [{"tool": "refund", "then": "ask"}]';

function ruleProblem(rule: unknown, at: string): string | null {
  if (!isObject(rule)) return `${at}: expected a rule, got ${show(rule)}; ${EXAMPLE}`;
  const unknown = Object.keys(rule).find((key) => !FIELDS.includes(key));
  if (unknown !== undefined) return `${at}.${unknown}: expected one of ${FIELDS.join(', ')}`;
  const { tool, effect, where, then, expires } = rule;
  if (typeof tool !== 'string' || tool === '' || tool.length > MAX_TOOL_CHARACTERS) {
    return `${at}.tool: expected a tool's name or a glob such as "delete_*", got ${show(tool)}`;
  }
  if (effect !== undefined && effect !== 'read' && effect !== 'keyed' && effect !== 'once') {
    return `${at}.effect: expected read, keyed, or once, got ${show(effect)}`;
  }
  if (then !== 'allow' && then !== 'ask' && then !== 'deny') {
    return `${at}.then: expected allow, ask, or deny, got ${show(then)}`;
  }
  if (expires !== undefined && !isExpiry(expires)) {
    return `${at}.expires: expected a whole number of ms or words such as "2 days", got ${show(expires)}; at most 36500 days`;
  }
  const unasked = rule['deciders'] !== undefined || expires !== undefined;
  if (then !== 'ask' && unasked) {
    return `${at}: expected \`deciders\` and \`expires\` only with then "ask"; remove them`;
  }
  return (
    decidersProblem(rule['deciders'], `${at}.deciders`) ??
    (where === undefined ? null : predicateProblem(where, `${at}.where`))
  );
}
