import { z } from 'zod';
import { InputError } from '../../core/errors.js';
import { refsIn, withValueAt } from '../../core/plan/plan.js';
import { type Json, type JsonObject, canonicalJson, isRecord } from '../../core/text/json.js';
import { INVOKE } from '../../core/transcript/catalog.js';
import type { CallProblem } from '../../core/transcript/messages.js';
import { describeIssues } from '../../validation/check-options.js';
import { guarded } from '../errors.js';
import { headBytes, normalizeError, toPlain } from '../result/plain.js';
import type { Tool } from '../tool.js';
import { type ParsedArguments, parseArguments } from './arguments.js';

const MAX_MESSAGE_BYTES = 4_000;

/** The keys that lead to a value. */
type Place = readonly (string | number)[];

/** The parsed arguments, or the problem that the model reads. */
type CheckedArguments =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: CallProblem };

/**
 * Checks arguments against the tool's `input` and returns the value for `executeParsed`.
 *
 * Never rejects, and waits at most `limitMs` (5 s by default): a refinement that throws or hangs is
 * reported as a problem. Issues at the places `unknownAt` are ignored; the value is then returned
 * unparsed.
 */
export async function checkArguments(
  tool: Pick<Tool, 'name' | 'input'>,
  value: unknown,
  options: { readonly limitMs?: number; readonly unknownAt?: readonly Place[] } = {},
): Promise<CheckedArguments> {
  const result = await guarded(
    `input schema of tool "${tool.name}"`,
    () => tool.input.safeParseAsync(value),
    options.limitMs,
  );
  if (!result.ok)
    return invalid(`The arguments of ${tool.name} could not be checked: ${result.message}`);
  if (result.value.success) return { ok: true, value: result.value.data };
  const { unknownAt = [] } = options;
  const issues = result.value.error.issues.filter((issue) => !isAbout(issue, unknownAt));
  if (issues.length === 0) return { ok: true, value };
  const lines = describeIssues(issues, value, {
    keys: {
      known: Object.keys(tool.input.shape),
      unrecognized: (keys, nearest) =>
        nearest === ''
          ? `unknown argument ${keys}; ${tool.name} has none`
          : `unknown argument ${keys}; expected one of ${nearest}`,
    },
  });
  return invalid([`The arguments of ${tool.name} are not valid:`, ...lines].join('\n'));
}

/**
 * Returns checked arguments as canonical JSON: what rules, people, and grants are asked about, and
 * what an execution is compared with.
 */
export function parsedJson(value: unknown): string {
  return canonicalJson(toPlain(value));
}

/** Whether an issue may be due to a value that is not known yet. */
function isAbout({ path, code }: z.core.$ZodIssue, unknownAt: readonly Place[]): boolean {
  return unknownAt.some((at) => begins(path, at) || (code === 'invalid_union' && begins(at, path)));
}

function begins(long: readonly PropertyKey[], short: readonly PropertyKey[]): boolean {
  return short.every((key, index) => key === long[index]);
}

function invalid(message: string): CheckedArguments {
  const text = headBytes(message, MAX_MESSAGE_BYTES);
  return { ok: false, problem: { type: 'invalid_arguments', message: text } };
}

/** Arguments with unresolved references, checked as far as possible. */
type PlannedArguments = CheckedArguments & {
  /** For people: the arguments with a text such as `<a1.data.id>` in place of each reference. */
  readonly described: unknown;
};

/**
 * Checks the arguments of a planned action against the tool's `input`. A reference may replace any
 * value; its place is checked once the value is known. Never rejects.
 */
export async function checkPlannedArguments(
  tool: Pick<Tool, 'name' | 'input'>,
  value: JsonObject,
): Promise<PlannedArguments> {
  const refs = refsIn(value);
  if (refs.length === 0) {
    const checked = await checkArguments(tool, value);
    return { ...checked, described: checked.ok ? checked.value : value };
  }
  const places = refs.map(({ at }) => at);
  const described = refs.reduce<Json>(
    (before, { ref, path, at }) =>
      withValueAt(before, at, path === '' ? `<${ref}>` : `<${ref}.${path}>`),
    value,
  );
  return { ...(await checkArguments(tool, value, { unknownAt: places })), described };
}

/** The keys that models use in a call of `invoke_tool`. */
const NAMES = ['tool', 'name'];
const ARGUMENTS = ['arguments', 'parameters'];
const EXAMPLE = '{"tool": "<name>", "arguments": {…}}';

/** The call that `invoke_tool` stands for; the caller checks whether there is such a tool. */
type InvokedCall =
  | { readonly ok: true; readonly name: string; readonly value: JsonObject }
  | Extract<ParsedArguments, { ok: false }>;

/**
 * Reads the arguments of `invoke_tool`: the tool's name and its arguments, as an object or as its
 * JSON text; missing arguments are an empty object. Other keys are refused, because they would be
 * lost.
 */
export function readInvokedCall(given: JsonObject): InvokedCall {
  const [name, otherName] = valuesOf(given, NAMES);
  if (typeof name !== 'string' || name === '') {
    return wrong(`${INVOKE} expects the name of a tool. Send ${EXAMPLE}.`);
  }
  const [inner = {}, otherArguments] = valuesOf(given, ARGUMENTS);
  const stray =
    Object.keys(given).find((key) => ![...NAMES, ...ARGUMENTS].includes(key)) ??
    (otherName !== undefined && otherName !== name ? 'name' : undefined) ??
    (otherArguments === undefined ? undefined : 'parameters');
  if (stray !== undefined) {
    const key = JSON.stringify(stray.slice(0, 64));
    return wrong(
      `${INVOKE} has no argument ${key}; the arguments of ${name.slice(0, 64)} belong in \`arguments\`. Send ${EXAMPLE}.`,
    );
  }
  const parsed = parseArguments(typeof inner === 'string' ? inner : JSON.stringify(inner));
  if (parsed.ok) return { ok: true, name, value: parsed.value };
  // Without the place, the model might change the outer arguments instead of the inner ones.
  const { type, message } = parsed.problem;
  return { ok: false, problem: { type, message: `In \`arguments\` of ${INVOKE}: ${message}` } };
}

/** Returns the values under these keys, in the order of the keys. */
function valuesOf(given: JsonObject, keys: readonly string[]): readonly (Json | undefined)[] {
  return keys.map((key) => given[key]).filter((value) => value !== undefined && value !== null);
}

function wrong(message: string): Extract<InvokedCall, { ok: false }> {
  return { ok: false, problem: { type: 'invalid_arguments', message } };
}

/**
 * Thrown by a tool that calls another system, such as an MCP server, if that system failed.
 *
 * - `unsent`: nothing has happened; the call may be repeated, whatever its effect
 * - `refused`: nothing has happened, but no retry will succeed: the credentials are wrong
 * - `unanswered`: the call was sent and may have happened; the outcome is unknown
 */
export class CallFault extends Error {
  override readonly name = 'CallFault';
  readonly kind: 'unsent' | 'refused' | 'unanswered';

  constructor(kind: CallFault['kind'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** Kinds of zod types that zod's own code checks in time proportional to the value. */
const PLAIN = new Set(
  (
    'any array boolean default enum intersection int literal never nonoptional null nullable ' +
    'number object optional prefault readonly record string tuple union unknown'
  ).split(' '),
);
const PLAIN_CHECKS = new Set(
  (
    'greater_than length_equals less_than max_length min_length multiple_of number_format ' +
    'string_format'
  ).split(' '),
);
/** String formats whose patterns zod generates; other patterns have to be among `z.regexes`. */
const OWN_FORMATS = new Set(
  'date datetime ends_with guid includes lowercase starts_with time uppercase uuid'.split(' '),
);
const OWN_PATTERNS: ReadonlySet<unknown> = new Set(Object.values(z.regexes));

const known = new WeakMap<object, boolean>();

/**
 * Returns whether checking a value against this type can block the process: the type contains its
 * author's code (refinements, transforms, error maps) or a pattern, or it refers to itself, which
 * makes unions exponential in the depth of the value. False only if the check is provably cheap.
 */
export function mayBeSlow(type: z.core.$ZodType): boolean {
  const before = known.get(type);
  if (before !== undefined) return before;
  // A type that occurs again during its own walk refers to itself.
  known.set(type, true);
  const slow = hasSlowPart(type);
  known.set(type, slow);
  return slow;
}

function hasSlowPart({ _zod: { def } }: z.core.$ZodType): boolean {
  if (!PLAIN.has(def.type) || isSlowCheck(def)) return true;
  if ((def.checks ?? []).some(({ _zod: check }) => isSlowCheck(check.def))) return true;
  return partsOf(def).some((part) => mayBeSlow(part));
}

function isSlowCheck(def: object): boolean {
  const { check, format, pattern, error, fn, ...others } = fieldsOf(def);
  // `fn` is a format that the author defined.
  if (error !== undefined || fn !== undefined) return true;
  if (check === undefined) return false;
  if (typeof check !== 'string' || !PLAIN_CHECKS.has(check)) return true;
  // Such as `hostname` and `protocol` of a URL.
  if (Object.values(others).some(isForeignPattern)) return true;
  if (!isForeignPattern(pattern)) return false;
  return typeof format !== 'string' || !OWN_FORMATS.has(format);
}

function isForeignPattern(value: unknown): boolean {
  return value instanceof RegExp && !OWN_PATTERNS.has(value);
}

/** Returns the types inside a type: those of properties, elements, and alternatives. */
function partsOf(def: object): readonly z.core.$ZodType[] {
  const { shape, items, options, ...others } = fieldsOf(def);
  const lists = [shape, items, options].flatMap((each) =>
    isNested(each) ? Object.values(each) : [],
  );
  return [...lists, ...Object.values(others)].filter(isType);
}

/** Returns all fields but the value of a default, a getter that may run the author's code. */
function fieldsOf(def: object): Record<string, unknown> {
  const names = Object.keys(def).filter((name) => name !== 'defaultValue');
  return Object.fromEntries(names.map((name) => [name, Reflect.get(def, name)]));
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function isType(value: unknown): value is z.core.$ZodType {
  return isNested(value) && '_zod' in value;
}

/** Kinds of zod schemas that no JSON value satisfies, or whose JSON form is ambiguous. */
const INEXPRESSIBLE = new Set([
  'bigint',
  'custom',
  'date',
  'file',
  'function',
  'map',
  'nan',
  'promise',
  'set',
  'symbol',
  'transform',
  'undefined',
  'void',
]);

/** Keywords whose keys are names that the author chose; their order is kept. */
const NAMED = new Set(['properties', '$defs', 'patternProperties']);

/**
 * Returns the JSON schema of a model's input: before transforms, and with defaults left optional.
 * Keywords are sorted and properties keep the order of the definition, so a definition always
 * produces the same text. `field` is the author's name for the schema.
 *
 * Throws an `InputError` that names each path that JSON schema cannot express.
 */
export function writtenSchema(type: z.ZodType, field: string): JsonObject {
  const refused: string[] = [];
  const schema = z.toJSONSchema(type, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema: { _zod: internals }, path }) => {
      const kind = internals.def.type;
      if (INEXPRESSIBLE.has(kind)) {
        refused.push(`"${schemaPath(path) || `(the whole ${field})`}" (${kind})`);
      }
    },
  });
  if (refused.length > 0) throw new InputError(inexpressible(field, refused.toSorted().join(', ')));
  assertExpressible(type, field);
  const { $schema: _dialect, ...rest } = schema;
  return orderedKeywords(asData(rest));
}

/** Throws for kinds that a later version of zod may add. */
function assertExpressible(type: z.ZodType, field: string): void {
  try {
    z.toJSONSchema(type, { io: 'input' });
  } catch (error) {
    const { message } = normalizeError(error);
    throw new InputError(inexpressible(field, `a part of it (${message})`), { cause: error });
  }
}

function inexpressible(field: string, what: string): string {
  return (
    `\`${field}\` has parts that JSON cannot express: ${what}. Models write JSON: use strings, ` +
    'numbers, booleans, enums, arrays, and objects (a date as z.iso.datetime(), a bigint as a string)'
  );
}

/** Writes a path in a JSON schema as in code: `["properties", "a", "items"]` becomes `a[]`. */
export function schemaPath(path: readonly (string | number)[]): string {
  const steps = path.map((step, index) => {
    const named = NAMED.has(String(path[index - 1]));
    if (named) return `.${step}`;
    if (step === 'items' || step === 'prefixItems') return '[]';
    if (step === 'additionalProperties' || step === 'propertyNames') return '{}';
    return typeof step === 'number' ? `(alternative ${step + 1})` : '';
  });
  return steps.join('').replace(/^\./, '');
}

/** Returns the schema as JSON: zod's result is JSON, but its type allows more. */
function asData(schema: object): JsonObject {
  const data: unknown = JSON.parse(JSON.stringify(schema));
  return isRecord(data) ? data : {};
}

/** Sorts keywords at every level; names of properties and definitions keep their order. */
export function orderedKeywords(schema: JsonObject): JsonObject {
  const sorted = Object.keys(schema)
    .toSorted()
    .map((key): [string, Json | undefined] => {
      const value = schema[key];
      if (NAMED.has(key) && isRecord(value)) {
        const named = Object.entries(value).map(([name, item]) => [name, ordered(item)] as const);
        return [key, Object.fromEntries(named)];
      }
      return [key, ordered(value)];
    });
  return Object.fromEntries(sorted);
}

function ordered(value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) return value.map((item: Json) => ordered(item) ?? null);
  return isRecord(value) ? orderedKeywords(value) : value;
}
