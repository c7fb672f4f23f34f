import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { MAX_DURABLE_MS, show, toMs } from '../core/text/text.js';
import { likelyMeant, nearestFirst } from './near-names.js';
import { unknownOption } from './unknown-option.js';

const MAX_ISSUES = 10;
const MAX_NAMES = 40;
const MAX_EXPECTATION_CHARACTERS = 300;

/** How to describe issues with the value as a whole, whose path is empty. */
interface RootDescription {
  /** Replaces the empty path. If absent, the line has no path and omits the received value. */
  readonly root?: string;
  /**
   * The keys that the value may have, and the text about other keys; `nearest` lists the possible
   * ones, nearest first, and may be empty, and `meant` is the one that the first of the other keys may
   * be a misspelling of. If absent, the issue's own message is used.
   */
  readonly keys?: {
    readonly known: readonly string[];
    unrecognized(keys: string, nearest: string, meant: string | undefined): string;
  };
  /**
   * Whether objects and lists are only named, and so is a text where an object or a list was expected:
   * options may hold secrets. Default: false.
   */
  readonly hidesObjects?: boolean;
}

/**
 * Describes validation issues, one line each and at most ten: `- path: expected X, got Y; fix`.
 *
 * A custom message of the form `expected X; fix` is split around the received value. An issue whose
 * `params` are `{ secret: true }` never shows the value.
 */
export function describeIssues(
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
  description: RootDescription,
): string[] {
  const lines = issues
    .slice(0, MAX_ISSUES)
    .map((issue) => `- ${describeIssue(issue, value, description)}`);
  if (issues.length > MAX_ISSUES) lines.push(`- and ${issues.length - MAX_ISSUES} more`);
  return lines;
}

/** Describes the first validation issue of a body, in which `at` is the place of the value, if not all of it. */
export function firstIssue(
  issues: readonly z.core.$ZodIssue[] = [],
  value: unknown,
  at = '',
): string {
  const [line = `- body: not valid`] = describeIssues(issues.slice(0, 1), value, {
    root: at || 'body',
  });
  const text = line.slice(2);
  return at === '' || text.startsWith(at) ? text : `${at}.${text}`;
}

function describeIssue(
  issue: z.core.$ZodIssue,
  value: unknown,
  description: RootDescription,
): string {
  const path = readablePath(issue.path) || (description.root ?? '');
  const label = path === '' ? '' : `${path}: `;
  if (issue.code === 'unrecognized_keys') return describeKeys(issue, description);
  const received = valueAt(value, issue.path);
  if (received === undefined && issue.code !== 'custom') {
    return `${label}missing, ${expectation(issue)}`;
  }
  const isWhole = path === '' && description.hidesObjects !== true;
  const isHidden = isWhole || (issue.code === 'custom' && issue.params?.['secret'] === true);
  if (isHidden) return label + expectation(issue);
  const shown = description.hidesObjects
    ? shownOption(issue, received) + meantValue(issue, received)
    : shownValue(received);
  return label + withReceived(expectation(issue), shown);
}

function shownValue(value: unknown): string {
  return typeof value === 'number' ? String(value) : show(value);
}

/** The kinds of values that are shown in place of another of them. */
const PLAIN: readonly string[] = ['string', 'number', 'int', 'boolean'];

function shownOption(issue: z.core.$ZodIssue, value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid date' : 'a date';
  const kind = zodKind(value);
  if (kind !== undefined) return `a zod schema of type ${show(kind)}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  const isExpectedPlain = issue.code !== 'invalid_type' || PLAIN.includes(issue.expected);
  return typeof value === 'string' && !isExpectedPlain ? 'a text' : shownValue(value);
}

/** Returns a note that names the possible value of an option that a text may be a misspelling of. */
function meantValue(issue: z.core.$ZodIssue, value: unknown): string {
  if (issue.code !== 'invalid_value' || typeof value !== 'string') return '';
  const values = issue.values.filter((one) => typeof one === 'string');
  const meant = likelyMeant(value, values);
  return meant === undefined ? '' : ` (nearest: ${show(meant)})`;
}

/** Returns the kind of a schema of zod 4, such as `string`; undefined for any other value. */
export function zodKind(value: unknown): string | undefined {
  // Another copy of zod may have made the schema, so `instanceof` is unreliable.
  const kind = property(property(property(value, '_zod'), 'def'), 'type');
  return typeof kind === 'string' ? kind : undefined;
}

/** Returns a property of a value; undefined if the value is not an object. */
export function property(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined;
}

function describeKeys(
  issue: z.core.$ZodIssueUnrecognizedKeys,
  { keys: root }: RootDescription,
): string {
  const keys = issue.keys.map((key) => show(key)).join(', ');
  if (issue.path.length === 0 && root !== undefined) {
    const [first = ''] = issue.keys;
    const nearest = nearestFirst(first, root.known).slice(0, MAX_NAMES);
    return root.unrecognized(keys, nearest.join(', '), likelyMeant(first, root.known));
  }
  const path = issue.path.length === 0 ? '' : `${readablePath(issue.path)}: `;
  return issue.message.startsWith('Unrecognized key')
    ? `${path}unknown field ${keys}`
    : path + issue.message;
}

/** Inserts the received value after what was expected and before the fix. */
function withReceived(text: string, shown: string): string {
  // It may say itself what was received, such as a length.
  if (text.includes(', got ')) return text;
  const fix = text.startsWith('expected ') ? text.indexOf('; ') : -1;
  return fix === -1
    ? `${text}, got ${shown}`
    : `${text.slice(0, fix)}, got ${shown}${text.slice(fix)}`;
}

function expectation(issue: z.core.$ZodIssue): string {
  const isOwnText = !issue.message.startsWith('Invalid input');
  if (issue.code === 'invalid_type' && !isOwnText) {
    return `expected ${issue.expected === 'nonoptional' ? 'a value' : issue.expected}`;
  }
  if (issue.code !== 'invalid_union' || issue.errors.length === 0 || isOwnText) {
    const text = issue.message
      .replace(/^(?:Invalid \w+|Too \w+): /, '')
      .replace(/^Invalid (?=(?:ISO|email|UUID|URL)\b)/, 'expected ');
    return Array.from(text).slice(0, MAX_EXPECTATION_CHARACTERS).join('');
  }
  const alternatives = issue.errors.map((issues) =>
    issues
      .slice(0, 3)
      .map((inner) => `${readablePath(inner.path)} ${expectation(inner)}`.trim())
      .join(' and '),
  );
  return `fits none of the alternatives (${alternatives.slice(0, 5).join(', or ')})`;
}

/** Writes a path as in code: `["items", 0, "name"]` becomes `items[0].name`. */
export function readablePath(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return steps.join('').replace(/^\./, '');
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((here, step) => {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, step)) return undefined;
    return Reflect.get(here, step) as unknown;
  }, value);
}

/** A schema for each option; the compiler rejects missing schemas and schemas without an option. */
export type OptionSchemas<Options> = { readonly [Key in keyof Required<Options>]: z.ZodType };

/**
 * Throws unless the options of a public function fit their schema. Types also enforce this, but a
 * caller may be JavaScript.
 *
 * The message names `kind` and the options' `name`, and has a line `field: expected X, got Y; fix`
 * for each fault. Objects and lists are not shown, since they may hold secrets. `fail` creates the error;
 * default: an `InputError`.
 */
export function checkOptions(
  kind: string,
  { schema, options }: { readonly schema: z.ZodType; readonly options: unknown },
  fail: (message: string) => Error = (message) => new InputError(message),
): void {
  const { error } = schema.safeParse(options, { error: unknownOptions });
  if (error === undefined) return;
  const name = isObject(options) && typeof options['name'] === 'string' ? options['name'] : null;
  const subject = name === null ? kind : `${kind} ${show(name)}`;
  const lines = describeIssues(error.issues, options, { hidesObjects: true });
  const [first = ''] = lines;
  throw fail(
    lines.length === 1 ? `${subject}: ${first.slice(2)}` : [`${subject}:`, ...lines].join('\n'),
  );
}

/** An option that only code can check. The text reads `a function`, or `a function; fix`. */
export function expected<Value>(
  text: string,
  accepts: (value: unknown) => boolean,
): z.ZodCustom<Value> {
  return z.custom<Value>(accepts, { error: `expected ${text}`, abort: true });
}

/**
 * Like `expected`, for an option that may contain a secret by mistake. No message contains its
 * value.
 */
export function expectedHidden<Value>(
  text: string,
  accepts: (value: unknown) => boolean,
): z.ZodCustom<Value> {
  return z.custom<Value>(accepts, {
    error: `expected ${text}`,
    abort: true,
    params: { secret: true },
  });
}

export const anyFunction = expected<(...given: never[]) => unknown>(
  'a function',
  (value) => typeof value === 'function',
);

/** A list of named values in which no two have the same name. */
export function uniquelyNamed<Item extends { readonly name: string }>(
  item: z.ZodType<Item>,
): z.ZodArray<z.ZodType<Item>> {
  return z.array(item).superRefine((items, context) => {
    const names = items.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice === undefined) return;
    const message = `expected different names, got ${show(twice)} twice; rename one`;
    context.addIssue({ code: 'custom', message, params: { secret: true } });
  });
}

function unknownOptions(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'unrecognized_keys' || !(issue.inst instanceof z.ZodObject)) return undefined;
  const known = Object.keys(issue.inst.shape);
  return issue.keys.map((key) => unknownOption(key, known)).join('\n  ');
}

/** The longest timer of Node in milliseconds, about 24 days; a longer one fires at once. */
export const MAX_NODE_TIMER_MS = 2_147_483_647;

/**
 * Returns the schema of an option that takes a `Duration` of whole milliseconds within a range. It
 * parses to milliseconds. `minMs` is 1 by default; `range` says the range in words.
 */
export function duration({
  minMs = 1,
  maxMs,
  range,
}: {
  readonly minMs?: number;
  readonly maxMs: number;
  readonly range: string;
}): z.ZodType<number> {
  const wanted = `expected a whole number of ms or words such as "30 seconds" or "2 days"; ${range}`;
  return z.union([z.number(), z.string()], wanted).transform((given, context) => {
    const ms = toMs(given);
    if (Number.isInteger(ms) && ms >= minMs && ms <= maxMs) return ms;
    context.addIssue({ code: 'custom', message: wanted });
    return z.NEVER;
  });
}

/** A duration that a timer of the worker measures. */
export const timerDuration = timerDurationFrom(1);

/** Returns the schema of such a duration of at least `minMs`; `least` is the minimum in words. */
export function timerDurationFrom(minMs: number, least?: string): z.ZodType<number> {
  const from = least === undefined ? '' : `at least ${least}, `;
  return duration({ minMs, maxMs: MAX_NODE_TIMER_MS, range: `${from}at most 24 days` });
}

/** A duration that a run measures, and not a timer of the worker: a server takes no longer timer. */
export const durableDuration = duration({ maxMs: MAX_DURABLE_MS, range: 'at most 36500 days' });

/** The fields that a value may have, and the types of those that can be checked. */
interface NamedFields {
  readonly known: readonly string[];
  readonly shape: Readonly<Record<string, z.core.$ZodType>>;
}

/** The maximum number of field names that an error lists. */
const MAX_FIELDS = 8;

/**
 * Returns what is wrong with given fields, or null: a name that is not known, with the nearest one,
 * or a value that its type refuses. `where` names the value, `owner` whose fields they are.
 */
export function fieldsProblem(
  { where, owner }: { readonly where: string; readonly owner: string },
  given: object,
  { known, shape }: NamedFields,
): string | null {
  for (const [name, value] of Object.entries(given)) {
    if (!known.includes(name)) {
      return `${where}: expected a field of ${owner}, got ${show(name)} ${fieldHint(name, known)}`;
    }
    const issues = Object.hasOwn(shape, name) ? issuesOf(shape[name], value) : [];
    if (issues.length === 0) continue;
    const placed = issues.map((issue) => ({ ...issue, path: [where, name, ...issue.path] }));
    const [first = ''] = describeIssues(placed, { [where]: given }, {});
    return `${first.slice(2)}; ${owner} has this type`;
  }
  return null;
}

/** Names the field that may be meant; without one that is near, the fields that there are. */
function fieldHint(name: string, known: readonly string[]): string {
  if (known.length === 0) return '(it has none); remove it';
  const meant = likelyMeant(name, known);
  const names = nearestFirst(name, known).slice(0, MAX_FIELDS).join(', ');
  return `(${meant === undefined ? `fields: ${names}` : `nearest: ${meant}`}); correct the name`;
}

/** Returns the issues with a value; none if only code of the author that takes time can tell. */
function issuesOf(type: z.core.$ZodType | undefined, value: unknown): readonly z.core.$ZodIssue[] {
  if (type === undefined) return [];
  try {
    return z.safeParse(type, value).error?.issues ?? [];
  } catch {
    return [];
  }
}

/** Returns the fields that a value has to have. */
export function requiredFields({ known, shape }: NamedFields): readonly string[] {
  return known.filter((name) => issuesOf(shape[name], undefined).length > 0);
}
