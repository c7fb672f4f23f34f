import { type Json, isObject } from '../text/json.js';
import { show } from '../text/text.js';

/** The operator of a comparison; see `Predicate`. */
export type PredicateOperator = 'eq' | 'ne' | 'over' | 'under' | 'in' | 'exists' | 'matches';

/**
 * A condition on a JSON value, as data. Rules for tool calls and grants use it.
 *
 * `path` names a place in the value: keys and list indexes, separated by dots, such as
 * `items.0.price`. `over` and `under` compare numbers, `in` searches a list, `exists` has no
 * `value`, and `matches` tests a text against a glob: `*` stands for any characters and `?` for
 * one. A comparison of a place that does not exist is false, except `ne`.
 *
 * @example
 * ```ts
 * import type { Predicate } from 'perdure';
 *
 * export const large: Predicate = {
 *   any: [
 *     { op: 'over', path: 'euros', value: 100 },
 *     { not: { op: 'matches', path: 'account', value: 'EU-*' } },
 *   ],
 * };
 * ```
 */
export type Predicate =
  | { readonly op: PredicateOperator; readonly path: string; readonly value?: Json }
  | { readonly all: readonly Predicate[] }
  | { readonly any: readonly Predicate[] }
  | { readonly not: Predicate };

const OPERATORS: readonly string[] = [
  'eq',
  'ne',
  'over',
  'under',
  'in',
  'exists',
  'matches',
] satisfies readonly PredicateOperator[];

/**
 * Maximum conditions in a predicate at all levels together, because each call is tested against all
 * of them.
 */
const MAX_CONDITIONS = 100;
const MAX_DEPTH = 20;
const MAX_GLOB_CHARACTERS = 200;

/** Returns whether the value satisfies the predicate. Never throws for a valid predicate. */
export function holds(predicate: Predicate, value: unknown): boolean {
  if ('all' in predicate) return predicate.all.every((each) => holds(each, value));
  if ('any' in predicate) return predicate.any.some((each) => holds(each, value));
  if ('not' in predicate) return !holds(predicate.not, value);
  const found = valueAt(value, predicate.path);
  const { op, value: wanted } = predicate;
  switch (op) {
    case 'eq':
      return same(found, wanted);
    case 'ne':
      return !same(found, wanted);
    case 'over':
      return typeof found === 'number' && typeof wanted === 'number' && found > wanted;
    case 'under':
      return typeof found === 'number' && typeof wanted === 'number' && found < wanted;
    case 'in':
      return found !== undefined && Array.isArray(wanted) && wanted.some((one) => same(found, one));
    case 'exists':
      return found !== undefined;
    case 'matches':
      return typeof found === 'string' && typeof wanted === 'string' && matchesGlob(found, wanted);
  }
}

/** Returns the value at a path; undefined if there is none. Only own fields count. */
function valueAt(value: unknown, path: string): unknown {
  if (path === '') return value;
  return path.split('.').reduce<unknown>((inner, key) => {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, key)) return undefined;
    // The own property `length` of a list is not a field of the JSON.
    if (Array.isArray(inner) && !/^\d+$/.test(key)) return undefined;
    return Reflect.get(inner, key) as unknown;
  }, value);
}

/** Whether two JSON values are equal; the order of keys does not matter. */
function same(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => same(item, other[index]));
  }
  if (!isObject(one) || !isObject(other)) return one === other;
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && same(one[key], other[key]));
}

/**
 * Whether a text matches a glob: `*` is any characters, `?` one. The time is bounded by the product
 * of both lengths, which a regular expression cannot guarantee.
 */
export function matchesGlob(text: string, glob: string): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  let place = 0;
  while (at < text.length) {
    if (glob[place] === '*') {
      star = place;
      resume = at;
      place += 1;
    } else if (place < glob.length && (glob[place] === '?' || glob[place] === text[at])) {
      place += 1;
      at += 1;
    } else if (star !== -1) {
      place = star + 1;
      resume += 1;
      at = resume;
    } else return false;
  }
  while (glob[place] === '*') place += 1;
  return place === glob.length;
}

/** Returns what is wrong with a predicate, or null. `path`: the field that holds it. */
export function predicateProblem(value: unknown, path: string): string | null {
  let conditions = 0;
  const check = (given: unknown, at: string, depth: number): string | null => {
    conditions += 1;
    if (conditions > MAX_CONDITIONS)
      return `${path}: expected at most ${MAX_CONDITIONS} conditions`;
    if (depth > MAX_DEPTH) return `${path}: expected conditions at most ${MAX_DEPTH} levels deep`;
    if (!isObject(given)) return `${at}: expected a predicate, got ${show(given)}; ${EXAMPLE}`;
    const list = Object.hasOwn(given, 'all') ? 'all' : Object.hasOwn(given, 'any') ? 'any' : null;
    if (list !== null) {
      const inner = given[list];
      const fits = Array.isArray(inner) && Object.keys(given).length === 1;
      if (!fits) return `${at}: expected only a list \`${list}\`, got ${show(given)}`;
      for (const [index, one] of inner.entries()) {
        const problem = check(one, `${at}.${list}[${index}]`, depth + 1);
        if (problem !== null) return problem;
      }
      return null;
    }
    if (!Object.hasOwn(given, 'not')) return comparisonProblem(given, at);
    if (Object.keys(given).length !== 1) return `${at}: expected only \`not\`, got ${show(given)}`;
    return check(given['not'], `${at}.not`, depth + 1);
  };
  return check(value, path, 1);
}

const EXAMPLE = 'give for example {"op": "over", "path": "euros", "value": 100}';

function comparisonProblem(given: Record<string, unknown>, at: string): string | null {
  const { op, path, value, ...rest } = given;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined)
    return `${at}.${unknown}: expected op, path, and value; correct its name, or remove it`;
  if (typeof op !== 'string' || !OPERATORS.includes(op)) {
    return `${at}.op: expected one of ${OPERATORS.join(', ')}, got ${show(op)}; ${EXAMPLE}`;
  }
  if (typeof path !== 'string') {
    return `${at}.path: expected a place such as "items.0.price", got ${show(path)}`;
  }
  switch (op) {
    case 'over':
    case 'under':
      if (typeof value === 'number') return null;
      return `${at}.value: expected a number for "${op}", got ${show(value)}`;
    case 'in':
      if (Array.isArray(value)) return null;
      return `${at}.value: expected a list for "in", got ${show(value)}`;
    case 'matches':
      if (typeof value === 'string' && value.length <= MAX_GLOB_CHARACTERS) return null;
      return `${at}.value: expected a glob of at most ${MAX_GLOB_CHARACTERS} characters, got ${show(value)}`;
    case 'exists':
      return value === undefined ? null : `${at}.value: expected none for "exists"; remove it`;
    default:
      return value === undefined ? `${at}.value: expected a value for "${op}", got none` : null;
  }
}

/** Returns a predicate in words for people, such as `euros over 100`. */
export function predicateText(predicate: Predicate): string {
  if ('all' in predicate) return joined(predicate.all, 'and');
  if ('any' in predicate) return joined(predicate.any, 'or');
  if ('not' in predicate) return `not (${predicateText(predicate.not)})`;
  const { op, path, value } = predicate;
  const words = { eq: 'is', ne: 'is not' } as Partial<Record<PredicateOperator, string>>;
  const place = path === '' ? 'the value' : path;
  return op === 'exists'
    ? `${place} exists`
    : `${place} ${words[op] ?? op} ${JSON.stringify(value)}`;
}

function joined(predicates: readonly Predicate[], word: 'and' | 'or'): string {
  if (predicates.length === 0) return word === 'and' ? 'always' : 'never';
  return predicates.map((each) => `(${predicateText(each)})`).join(` ${word} `);
}
