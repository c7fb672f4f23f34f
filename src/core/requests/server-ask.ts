import type { ToolDefinition } from '../definition/tool-definition.js';
import type { CallWork } from '../state/work.js';
import { type Json, type JsonObject, isJsonObject } from '../text/json.js';
import { escapeJson, formatCount } from '../text/text.js';
import type { AskedByServer, NewRequest, ServerAsk } from '../transcript/request.js';

/** Returns the first ask without an answer; undefined if all have one. */
export function nextAsk({ asks, answers }: AskedByServer): ServerAsk | undefined {
  return asks[answers.length];
}

/** Returns the ask that a request is about; undefined for a request about anything else. */
export function askOf({
  asked,
  request,
}: Pick<CallWork, 'asked' | 'request'>): ServerAsk | undefined {
  return asked === undefined || request?.kind !== 'question' ? undefined : nextAsk(asked);
}

/** Returns the request for the next ask. `at`: Unix time in ms. */
export function askRequest(
  { asks, answers, rounds }: AskedByServer,
  {
    tool,
    deciders,
    at,
  }: Pick<NewRequest, 'deciders'> & { readonly tool: ToolDefinition; readonly at: number },
): NewRequest {
  const { mcp, name, expiresMs } = tool;
  const place = asks.length === 1 ? '' : ` (${answers.length + 1} of ${asks.length})`;
  const again = rounds === 1 ? '' : `, for the ${ordinal(rounds)} time`;
  return {
    kind: 'question',
    why: `MCP server "${mcp?.server ?? ''}" asks before it executes ${name}${place}${again}`,
    raisedAt: at,
    ...(expiresMs !== undefined && { expiresAt: at + expiresMs }),
    ...(deciders && { deciders }),
  };
}

function ordinal(number: number): string {
  return ['first', 'second', 'third'][number - 1] ?? `${number}th`;
}

/** Returns the host that an address opens, without a user name that looks like one. */
export function hostOf(url: string): string {
  const [, host = ''] = /^https?:\/\/([^/?#\\]*)/i.exec(url) ?? [];
  return host.slice(host.lastIndexOf('@') + 1).toLowerCase();
}

/**
 * Returns a line for each field of a form: its name, what it takes, and the server's words about it.
 * They are foreign text.
 */
export function formLines(form: JsonObject): readonly string[] {
  const { properties, required } = form;
  const needed: readonly Json[] = isList(required) ? required : [];
  const fields = isJsonObject(properties) ? Object.entries(properties) : [];
  return fields.map(([name, schema]) => {
    const field = isJsonObject(schema) ? schema : {};
    const isNeeded = needed.includes(name) ? ', required' : '';
    const words = [textOf(field, 'title'), textOf(field, 'description')].filter(
      (one) => one !== '',
    );
    const about = words.length === 0 ? '' : `: ${words.join(' · ')}`;
    const facts = [choices(field), ...bounds(field), defaultOf(field)].filter((one) => one !== '');
    return `${name} (${typeOf(field)}${isNeeded})${about}${facts.length === 0 ? '' : ` [${facts.join('; ')}]`}`;
  });
}

/** Returns what the result of a client's tool has: a line for each field, or else its JSON schema. */
export function resultLines(result: JsonObject): readonly string[] {
  const lines = result['type'] === 'object' ? formLines(result) : [];
  return lines.length > 0 ? lines : [JSON.stringify(result)];
}

/** Returns the names of a form's fields. */
export function fieldNames({ properties }: JsonObject): readonly string[] {
  return isJsonObject(properties) ? Object.keys(properties) : [];
}

/** Returns an answer with the defaults of the fields that it does not have. */
export function withDefaults(given: JsonObject, { properties }: JsonObject): JsonObject {
  const defaults = Object.entries(isJsonObject(properties) ? properties : {}).flatMap(
    ([name, field]): readonly (readonly [string, Json])[] => {
      const value = isJsonObject(field) ? field['default'] : undefined;
      return value === undefined || Object.hasOwn(given, name) ? [] : [[name, value]];
    },
  );
  return { ...given, ...Object.fromEntries(defaults) };
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function textOf(field: JsonObject, name: string): string {
  const value = field[name];
  return typeof value === 'string' ? value : '';
}

function typeOf(field: JsonObject): string {
  const format = textOf(field, 'format');
  switch (field['type']) {
    case 'string':
      return format === '' ? 'text' : format;
    case 'boolean':
      return 'true or false';
    case 'array':
      return 'list';
    default:
      return textOf(field, 'type') || 'any value';
  }
}

/** Returns the values that a field, or each item of a list, may have, with their titles. */
function choices(field: JsonObject): string {
  const { items } = field;
  const each = field['type'] === 'array' && isJsonObject(items) ? items : field;
  const shown = choicesOf(each).map(({ value, title }) => choice(value, title));
  return shown.length === 0 ? '' : `one of ${shown.join(', ')}`;
}

/** Returns the values that a schema lists, with their titles; empty if it takes others. */
function choicesOf(
  schema: JsonObject,
): readonly { readonly value: Json; readonly title: Json | undefined }[] {
  const names = isList(schema['enumNames']) ? schema['enumNames'] : [];
  const values = schema['enum'];
  if (isList(values)) return values.map((value, at) => ({ value, title: names[at] }));
  const titled = [schema['oneOf'], schema['anyOf']].find(isList) ?? [];
  return titled.flatMap((one) =>
    isJsonObject(one) && one['const'] !== undefined
      ? [{ value: one['const'], title: one['title'] }]
      : [],
  );
}

function choice(value: unknown, title: unknown): string {
  const json = JSON.stringify(value);
  return typeof title === 'string' && title !== value ? `${json} (${title})` : json;
}

function bounds(field: JsonObject): readonly string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems } = field;
  return [
    bound('at least', minimum, ''),
    bound('at most', maximum, ''),
    bound('at least', minLength, 'character'),
    bound('at most', maxLength, 'character'),
    bound('at least', minItems, 'item'),
    bound('at most', maxItems, 'item'),
  ];
}

function bound(word: string, value: Json | undefined, noun: string): string {
  if (typeof value !== 'number') return '';
  return `${word} ${noun === '' ? value : formatCount(value, noun)}`;
}

function defaultOf(field: JsonObject): string {
  const value = field['default'];
  return value === undefined ? '' : `default ${JSON.stringify(value)}`;
}

/** Stands for what only a person can say in a printed command, which is refused with it. */
const OWN_WORDS = 'TEXT';

/** The longest answer in a command, in UTF-16 units. */
const MAX_EXAMPLE = 300;

/**
 * Returns an answer to a form as JSON for a command, ready to be edited: the defaults, the values that are the
 * only ones, and `TEXT` for all others, so that pasting the command consents to nothing. Optional
 * fields without a default are left out if there are others; if it is too long, so are all with a default. Null
 * if it is still too long, or if the form takes `TEXT` as one of its choices.
 */
export function exampleAnswer({ properties, required }: JsonObject): string | null {
  const needed: readonly Json[] = isList(required) ? required : [];
  const fields = Object.entries(isJsonObject(properties) ? properties : {}).map(
    ([name, schema]) => ({ name, field: isJsonObject(schema) ? schema : {} }),
  );
  const isOpen = ({ field }: (typeof fields)[number]): boolean => field['default'] === undefined;
  const wanted = fields.filter((one) => !isOpen(one) || needed.includes(one.name));
  const shown = wanted.length === 0 ? fields : wanted;
  if (shown.some(({ field }) => onlyValueOf(field) === undefined && offersOwnWords(field))) {
    return null;
  }
  const texts = [shown, shown.filter(isOpen)].map((each) =>
    escapeJson(
      JSON.stringify(Object.fromEntries(each.map(({ name, field }) => [name, exampleOf(field)]))),
    ),
  );
  return texts.find(({ length }) => length <= MAX_EXAMPLE) ?? null;
}

/** Returns the field of an answer that still has the placeholder of a printed command, if one does. */
export function unwrittenField(given: JsonObject, { properties }: JsonObject): string | undefined {
  const schemas = isJsonObject(properties) ? properties : {};
  const isUnwritten = ([name, value]: readonly [string, Json | undefined]): boolean => {
    const schema = schemas[name];
    const isFree = !isJsonObject(schema) || !offersOwnWords(schema);
    return isFree && (value === OWN_WORDS || (isList(value) && value.includes(OWN_WORDS)));
  };
  return Object.entries(given).find(isUnwritten)?.[0];
}

/** Whether a field has the placeholder among its values, so that it may be an answer. */
function offersOwnWords(field: JsonObject): boolean {
  const { default: given, const: only, items } = field;
  const values = [field, isJsonObject(items) ? items : {}].flatMap((one) =>
    choicesOf(one).map(({ value }) => value),
  );
  return [...values, only, ...(isList(given) ? given : [given])].includes(OWN_WORDS);
}

function exampleOf(field: JsonObject): Json {
  const only = onlyValueOf(field);
  if (only !== undefined) return only;
  const { type } = field;
  return (isList(type) ? type[0] : type) === 'array' ? [OWN_WORDS] : OWN_WORDS;
}

/** Returns the default of a field, or the only value that it takes; undefined if a person has a choice. */
function onlyValueOf({ default: given, const: only, ...field }: JsonObject): Json | undefined {
  if (given !== undefined) return given;
  if (only !== undefined) return only;
  const isOne = [field['enum'], field['oneOf'], field['anyOf']].find(isList)?.length === 1;
  return isOne ? choicesOf(field)[0]?.value : undefined;
}
