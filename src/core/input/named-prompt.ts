import { type AgentDefinition, type PromptDefinition, fillText } from '../definition/definition.js';
import { type Json, type JsonObject, canonicalJson, checkArgs, isObject } from '../text/json.js';
import { show } from '../text/text.js';
import { type Ask, byteLength } from './inbox.js';
import { settingsMisfit } from './turn-settings.js';

/** The keywords of JSON schema that `argumentProblem` checks. */
const CHECKED = new Set([
  'type',
  'enum',
  'const',
  'anyOf',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'items',
  'minItems',
  'maxItems',
  'properties',
  'required',
  'additionalProperties',
]);
/** Keywords that only annotate. */
const DESCRIBING = new Set(['description', 'title', 'default', 'examples', 'deprecated']);

/**
 * Returns a keyword of the schema that `argumentProblem` does not check; null if it checks all of
 * them.
 */
export function uncheckedKeyword(schema: unknown): string | null {
  if (!isObject(schema)) return null;
  for (const [keyword, value] of Object.entries(schema)) {
    if (!CHECKED.has(keyword) && !DESCRIBING.has(keyword)) return keyword;
    const found = innerSchemas(keyword, value).map(uncheckedKeyword);
    const inner = found.find((one) => one !== null);
    if (inner !== undefined) return inner;
  }
  return null;
}

function innerSchemas(keyword: string, value: unknown): readonly unknown[] {
  if (keyword === 'items' || keyword === 'additionalProperties') return [value];
  if (keyword === 'anyOf' && Array.isArray(value)) return value;
  return keyword === 'properties' && isObject(value) ? Object.values(value) : [];
}

/** Returns what is wrong with a value by its JSON schema, or null. `at`: the field's name. */
function argumentProblem(schema: unknown, value: unknown, at: string): string | null {
  if (!isObject(schema)) return null;
  const { type, enum: among, const: only, anyOf } = schema;
  const wrong = (expected: string) => `${at}: expected ${expected}, got ${show(value)}`;
  if (Array.isArray(anyOf)) {
    const problems = anyOf.map((one: unknown) => argumentProblem(one, value, at));
    if (!problems.includes(null)) return wrong(anyOf.map(shortForm).join(', or '));
  }
  const types = typesOf(type);
  if (types.length > 0 && !types.some((one) => hasType(one, value)))
    return wrong(shortForm(schema));
  if (Array.isArray(among) && !among.some((one: Json) => isEqual(one, value))) {
    return wrong(`one of ${among.map((one) => JSON.stringify(one)).join(', ')}`);
  }
  if (only !== undefined && !isEqual(only, value)) return wrong(JSON.stringify(only));
  const outside = boundsProblem(schema, value);
  return outside === null ? contentProblem(schema, value, at) : wrong(outside);
}

function shortForm(schema: unknown): string {
  const { type, enum: among, const: only } = isObject(schema) ? schema : {};
  if (Array.isArray(among)) return among.map((one) => JSON.stringify(one)).join(' or ');
  if (only !== undefined) return JSON.stringify(only);
  return typesOf(type).map(typeName).join(', or ') || 'a value';
}

/** Returns the types of the keyword, which has one type or a list. */
function typesOf(type: unknown): readonly string[] {
  return [type].flat().filter((one) => typeof one === 'string');
}

function typeName(type: string): string {
  if (type === 'integer') return 'a whole number';
  if (type === 'array') return 'a list';
  if (type === 'null') return 'null';
  return type === 'object' ? 'an object' : `a ${type}`;
}

function hasType(type: string, value: unknown): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value);
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value) && !Array.isArray(value);
    case 'null':
      return value === null;
    default:
      return typeof value === type;
  }
}

function isEqual(a: unknown, b: unknown): boolean {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- arguments are JSON
  return canonicalJson(a as Json) === canonicalJson(b as Json);
}

const UNITS = { Length: 'characters', imum: '', Items: 'items' } as const;

function boundsProblem(schema: Record<string, unknown>, value: unknown): string | null {
  const [size, kind] = measure(value);
  if (size === null) return null;
  const bound = (name: string) => (typeof schema[name] === 'number' ? schema[name] : null);
  const [least, most] = [bound(`min${kind}`), bound(`max${kind}`)];
  const unit = UNITS[kind] === '' ? '' : ` ${UNITS[kind]}`;
  if (least !== null && size < least) return `at least ${least}${unit}`;
  if (most !== null && size > most) return `at most ${most}${unit}`;
  if (kind !== 'imum') return null;
  const [above, below] = [bound('exclusiveMinimum'), bound('exclusiveMaximum')];
  if (above !== null && size <= above) return `more than ${above}`;
  return below !== null && size >= below ? `less than ${below}` : null;
}

function measure(value: unknown): readonly [number | null, keyof typeof UNITS] {
  if (typeof value === 'string') return [value.length, 'Length'];
  return Array.isArray(value)
    ? [value.length, 'Items']
    : [typeof value === 'number' ? value : null, 'imum'];
}

function contentProblem(
  schema: Record<string, unknown>,
  value: unknown,
  at: string,
): string | null {
  if (Array.isArray(value)) {
    const found = value.map((item, index) =>
      argumentProblem(schema['items'], item, `${at}[${index}]`),
    );
    return found.find((one) => one !== null) ?? null;
  }
  return isObject(value) ? objectProblem(schema, value, at) : null;
}

/** Returns what is wrong with the fields of an object by its JSON schema, or null. */
function objectProblem(
  schema: Record<string, unknown>,
  value: Record<string, unknown>,
  at: string,
): string | null {
  const { properties, required, additionalProperties: more } = schema;
  const known = isObject(properties) ? properties : {};
  const missing = (Array.isArray(required) ? required : []).find(
    (name: unknown) => typeof name === 'string' && !Object.hasOwn(value, name),
  );
  if (missing !== undefined) {
    return `${at}.${String(missing)}: expected a value, got none; give this argument`;
  }
  for (const [name, item] of Object.entries(value)) {
    const own = Object.hasOwn(known, name);
    if (!own && more === false) {
      return `${at}.${name}: expected one of ${Object.keys(known).join(', ') || 'none'}; correct its name, or remove it`;
    }
    const found = argumentProblem(own ? known[name] : more, item, `${at}.${name}`);
    if (found !== null) return found;
  }
  return null;
}

/** A prompt of the agent that a message names, with its arguments. */
export interface PromptCall {
  readonly prompt: string;
  readonly args?: JsonObject;
}

/** Maximum characters of a prompt's name. */
const MAX_PROMPT_NAME = 64;
/** Maximum bytes of a prompt's text, which the history records like any message. */
const MAX_TEXT_BYTES = 256 * 1024;

type Prompts = Pick<AgentDefinition, 'name' | 'prompts'>;

/** Returns the prompt with this name; undefined if the agent has none. */
export function findPrompt(
  { prompts = {} }: Pick<AgentDefinition, 'prompts'>,
  name: string | undefined,
): PromptDefinition | undefined {
  return name !== undefined && Object.hasOwn(prompts, name) ? prompts[name] : undefined;
}

function promptFormProblem(prompt: unknown): string | null {
  if (prompt === undefined) return null;
  const fits = typeof prompt === 'string' && /^[\w.-]+$/.test(prompt);
  if (fits && prompt.length <= MAX_PROMPT_NAME) return null;
  return `prompt: expected the name of a prompt of the agent, got ${show(prompt)}`;
}

/** Returns what is wrong with a message that names a prompt, or null. `args`: its arguments. */
export function promptMessageProblem(
  { prompt, input, message: text }: Record<string, unknown>,
  args: unknown,
): string | null {
  const problem = promptFormProblem(prompt) ?? checkArgs(args);
  if (problem !== null) return problem;
  if (text !== undefined && text !== '') {
    return 'message: cannot be combined with "prompt"; remove one';
  }
  return input === undefined ? null : 'input: cannot be combined with "prompt"; remove one';
}

/** Returns what is wrong with a run's initial prompt, or null. */
export function startPromptProblem(value: Record<string, unknown>): string | null {
  const { prompt, promptArgs } = value;
  if (prompt !== undefined) return promptMessageProblem(value, promptArgs);
  return promptArgs === undefined ? null : 'promptArgs: expected a prompt; give "prompt" too';
}

/** Returns why this agent cannot accept a message's prompt, settings, or conversation, or null. */
export function misfitProblem(
  definition: AgentDefinition,
  { prompt, args, messages, settings }: Pick<Ask, 'prompt' | 'args' | 'messages' | 'settings'>,
): string | null {
  if (messages !== undefined && definition.graph !== undefined) {
    return `messages: "${definition.name}" is a graph, which takes one message; send "message" or "input"`;
  }
  const refused = settingsMisfit(definition, settings);
  if (refused !== null || prompt === undefined) return refused;
  return promptProblem(definition, { prompt, ...(args && { args }) });
}

/** Returns why an agent has no such prompt, or why the arguments do not fit it; null if they do. */
export function promptProblem(
  definition: Prompts,
  { prompt, args = {} }: PromptCall,
): string | null {
  const found = findPrompt(definition, prompt);
  if (found === undefined) return unknownPrompt(definition, prompt);
  const { args: schema = {} } = found;
  const known = argumentNames(found);
  const unknown = Object.keys(args).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const possible =
      known.length === 0 ? 'it has none' : `it has ${nearest(unknown, known).join(', ')}`;
    return `args.${unknown}: expected an argument of prompt "${prompt}" (${possible}); correct the name, or remove it`;
  }
  const misfit = objectProblem(schema, args, 'args');
  if (misfit !== null) return misfit;
  const bytes = byteLength(promptText(definition, { prompt, args }));
  if (bytes <= MAX_TEXT_BYTES) return null;
  return `args: expected a text of at most ${MAX_TEXT_BYTES} bytes, got ${bytes}; put the text into a file and name the file`;
}

/** Returns the names of a prompt's arguments. */
function argumentNames({ args }: Pick<PromptDefinition, 'args'>): readonly string[] {
  return isObject(args?.['properties']) ? Object.keys(args['properties']) : [];
}

/** Returns the text of a message that names a prompt; empty if the agent has no such prompt. */
export function promptText(definition: Prompts, { prompt, args = {} }: PromptCall): string {
  const found = findPrompt(definition, prompt);
  if (found?.args === undefined) return found?.text ?? '';
  const properties = isObject(found.args['properties']) ? found.args['properties'] : {};
  const values = Object.entries(properties).map(([name, schema]): [string, string] => [
    name,
    toText(Object.hasOwn(args, name) ? args[name] : defaultOf(schema)),
  ]);
  return fillText(found.text, Object.fromEntries(values));
}

function defaultOf(schema: unknown): Json | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a schema is JSON
  return isObject(schema) ? (schema['default'] as Json | undefined) : undefined;
}

function toText(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  return value === undefined ? '' : canonicalJson(value);
}

function unknownPrompt({ name, prompts = {} }: Prompts, prompt: string): string {
  const names = Object.keys(prompts);
  const agent = `agent "${name}"`;
  if (names.length === 0) return `prompt: ${agent} has no prompts; send a message instead`;
  return `prompt: expected a prompt of ${agent}, got ${show(prompt)} (${namesHint(prompt, names)}); correct the name`;
}

/** The names that a hint lists at most. */
const SHOWN = 3;

/** Returns which name an unknown one may be a misspelling of, as ` (nearest: plan)`; empty if none is near. */
export function nearHint(name: string, names: readonly string[]): string {
  const [meant] = nearNames(name, names);
  return meant === undefined ? '' : ` (nearest: ${meant})`;
}

/** Returns the names that an unknown one may be a misspelling of, or else some that exist. */
function namesHint(name: string, names: readonly string[]): string {
  const near = nearNames(name, names);
  if (near.length > 0) return `nearest: ${near.join(', ')}`;
  return `it has: ${names.toSorted().slice(0, SHOWN).join(', ')}${names.length > SHOWN ? ', …' : ''}`;
}

/** Returns the names that an unknown one may be a misspelling of, best match first. */
function nearNames(name: string, names: readonly string[]): readonly string[] {
  const short = name.slice(0, 100).toLowerCase();
  return nearest(short, names).filter((one) => isNear(short, one.toLowerCase()));
}

/** Returns the names most similar to this one, best match first. */
function nearest(name: string, names: readonly string[]): readonly string[] {
  return names
    .map((one) => ({ one, edits: editDistance(name.toLowerCase(), one.toLowerCase()) }))
    .toSorted((a, b) => a.edits - b.edits || (a.one < b.one ? -1 : 1))
    .slice(0, SHOWN)
    .map(({ one }) => one);
}

/** Returns the number of letters to add, remove, or replace. Both names must be short. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  from.split('').forEach((letter, line) => {
    const next = [line + 1];
    for (let column = 1; column <= to.length; column += 1) {
      const same = letter === to[column - 1] ? 0 : 1;
      const least = Math.min(
        (row[column - 1] ?? 0) + same,
        (row[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
      );
      next.push(least);
    }
    row = next;
  });
  return row[to.length] ?? 0;
}

/** Fields that only perdure itself gives. */
const INTERNAL = 'contextBlob turnContext depth budget fork called door requesters'.split(' ');

/** Returns the error for an unknown field. It lists only the public fields. */
export function unknownField(input: string, field: string, known: readonly string[]): string {
  const names = known.filter((name) => !INTERNAL.includes(name));
  return `${input}.${field}: expected one of ${names.join(', ')}${nearHint(field, names)}; correct its name, or remove it`;
}

/**
 * Returns what is wrong with the fields of a message or a start that someone gives in code, or null: an
 * unknown name that is near no other, or a text in `input`. Both are mostly the message itself. A run has
 * words of its own for the rest.
 */
export function givenMessageProblem(
  given: Readonly<Record<string, unknown>>,
  known: readonly string[],
): string | null {
  const names = known.filter((name) => !INTERNAL.includes(name));
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  const { input, message } = given;
  if (unknown === undefined) {
    if (typeof input !== 'string' || message !== undefined) return null;
    return `input: expected an object with fields of the state of a graph, got ${show(input)}; give a text as message`;
  }
  const [meant = ''] = nearest(unknown.slice(0, 100), names);
  if (isNear(unknown.slice(0, 100).toLowerCase(), meant.toLowerCase())) {
    return `${unknown}: expected a field of a message; did you mean ${meant}?`;
  }
  const fix = message === undefined ? 'give the text as message' : 'remove it';
  return `${unknown}: expected one of ${names.join(', ')}; ${fix}`;
}

/** Whether at most every third letter differs, or the same letters are in another order. */
function isNear(name: string, other: string): boolean {
  const [letters, others] = [name, other].map((one) => one.split('').toSorted().join(''));
  return letters === others || editDistance(name, other) * 3 <= Math.max(name.length, other.length);
}
