import { type JsonObject, isObject, parseJson, quoteLargeIntegers } from '../core/text/json.js';
import { findHazard } from '../tools/arguments/arguments.js';
import type { ModelTool, ReplyCall } from './model.js';

type Tools = readonly Pick<ModelTool, 'name' | 'parameters'>[];

/** Calls that a model wrote between the tags of its chat template. */
export interface MarkedCalls {
  /** The text before the first tag. */
  readonly before: string;
  /** The calls, in order; null if the markup is incomplete or of an unknown form. */
  readonly calls: readonly ReplyCall[] | null;
}

/** The tags with which calls begin, in the forms of different models. */
const OPENINGS = [
  '<tool_call>',
  '<tool_calls>',
  '<function_call>',
  '<function_calls>',
  '<function=',
  '<invoke name=',
  '<|tool_call|>',
  '<|tool_call_begin|>',
  '<|tool_calls_section_begin|>',
  '<|python_tag|>',
  '<|channel|>commentary to=functions.',
  '[TOOL_CALLS]',
] as const;

/** The tags that may follow the last call. */
const ENDINGS = [
  '</tool_call>',
  '</tool_calls>',
  '</function_call>',
  '</function_calls>',
  '</invoke>',
  '<|tool_call_end|>',
  '<|tool_calls_section_end|>',
  '<|call|>',
  '<|eot_id|>',
  '<|eom_id|>',
  '<|im_end|>',
  '<|end|>',
  '</s>',
] as const;

/** Spellings of the same tags. What precedes a name is removed in tags only, never in arguments. */
const SPELLINGS: readonly (readonly [string | RegExp, string])[] = [
  [
    /(<\/?)(?:｜DSML｜|\|DSML\||antml:|minimax:)(?=(?:function_calls?|tool_calls?|invoke|parameter)\b)/g,
    '$1',
  ],
  ['<｜tool▁calls▁begin｜>', '<|tool_calls_section_begin|>'],
  ['<｜tool▁calls▁end｜>', '<|tool_calls_section_end|>'],
  ['<｜tool▁call▁begin｜>', '<|tool_call_begin|>'],
  ['<｜tool▁call▁end｜>', '<|tool_call_end|>'],
  ['<｜tool▁sep｜>', '<|tool_call_argument_begin|>'],
  ['<｜end▁of▁sentence｜>', '</s>'],
];

/** A longer text is an answer. */
const MAX_CHARACTERS = 1024 * 1024;
const MAX_CALLS = 128;

/**
 * Reads the calls between tags with which a text ends. Returns null for a text without them: one
 * with other text after the tags, or with the tags in a code block, is about calls.
 */
export function parseMarkedCalls(given: string, tools: Tools): MarkedCalls | null {
  if (given.length > MAX_CHARACTERS) return null;
  const text = SPELLINGS.reduce((so, [from, to]) => so.replaceAll(from, to), given);
  const begin = findFirst(text, OPENINGS);
  if (begin === null || isQuoted(text.slice(0, begin))) return null;
  const before = text.slice(0, begin).trim();
  const reader = createReader(text, begin);
  const calls: ReplyCall[] = [];
  while (!reader.isAtEnd()) {
    const read = calls.length < MAX_CALLS ? readCalls(reader, tools) : null;
    if (read === 'text') return null;
    if (read === null) return before === '' || calls.length > 0 ? { before, calls: null } : null;
    calls.push(...read);
  }
  return calls.length === 0 ? null : { before, calls };
}

/** Whether a text is nothing but the markup of calls, whole or not. */
export function isOnlyMarkup(text: string): boolean {
  return parseMarkedCalls(text, [])?.before === '';
}

function findFirst(text: string, tags: readonly string[]): number | null {
  const places = tags.map((tag) => text.indexOf(tag)).filter((at) => at >= 0);
  return places.length === 0 ? null : Math.min(...places);
}

/** Whether a text ends within a code block or a quotation mark. */
function isQuoted(before: string): boolean {
  return before.split('```').length % 2 === 0 || /[`'"]$/.test(before.slice(-1));
}

interface Reader {
  /** Skips blanks and closing tags; returns true at the end of the text. */
  isAtEnd(): boolean;
  /** Skips a tag if it comes next. */
  readonly take: (tag: string) => boolean;
  /** Returns the text up to the nearest of these tags, which is skipped, or to the end. */
  until(...tags: readonly string[]): { readonly text: string; readonly tag: string | null };
  rest(): string;
  skip(characters: number): void;
}

function createReader(text: string, from: number): Reader {
  let at = from;
  const skipBlanks = (): void => {
    while (at < text.length && ' \t\r\n'.includes(text.charAt(at))) at += 1;
  };
  const take = (tag: string): boolean => {
    if (!text.startsWith(tag, at)) return false;
    at += tag.length;
    return true;
  };
  return {
    take,
    isAtEnd() {
      skipBlanks();
      while (ENDINGS.some(take)) skipBlanks();
      return at >= text.length;
    },
    until(...tags) {
      const ends = tags
        .map((tag) => ({ tag, place: text.indexOf(tag, at) }))
        .filter(({ place }) => place >= 0)
        .toSorted((a, b) => a.place - b.place);
      const [end] = ends;
      const part = text.slice(at, end?.place);
      at = end === undefined ? text.length : end.place + end.tag.length;
      return { text: part, tag: end?.tag ?? null };
    },
    rest: () => text.slice(at),
    skip: (characters) => void (at += characters),
  };
}

/** Reads the next call or list of calls; null if it cannot be read, `text` if none follows. */
function readCalls(reader: Reader, tools: Tools): readonly ReplyCall[] | 'text' | null {
  if (['<tool_calls>', '<function_calls>', '<|tool_calls_section_begin|>'].some(reader.take)) {
    // A list of calls: the calls follow, or one JSON text.
    return /^\s{0,20}[[{]/.test(reader.rest().slice(0, 24))
      ? readJsonCalls(reader.until('</tool_calls>', '</function_calls>').text)
      : [];
  }
  if (reader.take('<|tool_call_begin|>')) return readTokenCall(reader);
  if (reader.take('<|channel|>commentary to=functions.')) return readHarmonyCall(reader);
  if (reader.take('[TOOL_CALLS]')) return readMistralCalls(reader);
  if (reader.take('<|python_tag|>') || reader.take('<|tool_call|>')) {
    return readJsonCalls(reader.until('<|eom_id|>', '<|eot_id|>', '<|/tool_call|>', '</s>').text);
  }
  if (reader.take('<function=')) return readNamedCall(reader, { tools, close: '</function>' });
  if (reader.take('<invoke name=')) return readNamedCall(reader, { tools, close: '</invoke>' });
  if (reader.take('<tool_call>') || reader.take('<function_call>')) {
    return readTaggedCall(reader.until('</tool_call>', '</function_call>').text.trim(), tools);
  }
  return 'text';
}

/** Reads what is between `<tool_call>` and its end. */
function readTaggedCall(inner: string, tools: Tools): readonly ReplyCall[] | null {
  if (inner.startsWith('{') || inner.startsWith('[')) return readJsonCalls(inner);
  for (const [open, close] of [
    ['<function=', '</function>'],
    ['<invoke name=', '</invoke>'],
  ] as const) {
    if (!inner.startsWith(open)) continue;
    const reader = createReader(inner, open.length);
    const calls = [...(readNamedCall(reader, { tools, close }) ?? [])];
    while (!reader.isAtEnd()) {
      const next = reader.take(open) ? readNamedCall(reader, { tools, close }) : null;
      if (next === null) return null;
      calls.push(...next);
    }
    return calls.length === 0 ? null : calls;
  }
  return readKeyedCall(inner, tools);
}

/** Reads a name followed by keys and values: `<arg_key>…</arg_key><arg_value>…</arg_value>`. */
function readKeyedCall(inner: string, tools: Tools): readonly ReplyCall[] | null {
  const reader = createReader(inner, 0);
  const { text, tag } = reader.until('<arg_key>');
  const args: Record<string, unknown> = {};
  const name = text.trim();
  for (let key = tag; key !== null; key = reader.until('<arg_key>').tag) {
    const written = reader.until('</arg_key>');
    reader.until('<arg_value>');
    const value = reader.until('</arg_value>');
    if (written.tag === null || value.tag === null) return null;
    const property = written.text.trim();
    args[property] = toValue(value.text, getProperty({ tools, name, property }));
  }
  return isName(name) ? [{ name, arguments: JSON.stringify(args) }] : null;
}

/** Reads `NAME>…`: the arguments are JSON, or parameters between tags. */
function readNamedCall(
  reader: Reader,
  { tools, close }: { readonly tools: Tools; readonly close: string },
): readonly ReplyCall[] | null {
  const name = unquote(reader.until('>').text);
  const body = reader.until(close, '</tool_call>');
  const inner = body.text.trim();
  if (!isName(name)) return null;
  if (inner === '') return body.tag === null ? null : [{ name, arguments: '{}' }];
  if (inner.startsWith('{'))
    return isObject(parseJson(inner)) ? [{ name, arguments: inner }] : null;
  if (body.tag === null) return null;
  const args: Record<string, unknown> = {};
  const parameters = createReader(inner, 0);
  while (!parameters.isAtEnd()) {
    if (!['<parameter=', '<parameter name='].some(parameters.take)) return null;
    const [head = '', ...attributes] = parameters.until('>').text.split(' ');
    const property = unquote(head);
    const value = parameters.until('</parameter>');
    if (value.tag === null || property === '') return null;
    const isText = attributes.some((one) => one === 'string="true"');
    const schema = isText ? { type: 'string' } : getProperty({ tools, name, property });
    args[property] = toValue(value.text, schema);
  }
  return [{ name, arguments: JSON.stringify(args) }];
}

/** Reads `functions.NAME:0<…argument_begin…>{…}<…end…>`, or `function<…>NAME` and a fence. */
function readTokenCall(reader: Reader): readonly ReplyCall[] | null {
  const head = reader.until('<|tool_call_argument_begin|>').text.trim();
  const body = reader.until('<|tool_call_end|>').text.trim();
  const isOld = head === 'function';
  const [line = '', ...rest] = body.split('\n');
  const json = isOld ? rest.join('\n').replaceAll('```json', '').replaceAll('```', '') : body;
  const name = (isOld ? line : head)
    .trim()
    .replace(/^functions\./, '')
    .replace(/:\d+$/, '');
  return isName(name) && isObject(parseJson(json)) ? [{ name, arguments: json.trim() }] : null;
}

/** Reads `NAME …<|message|>{…}<|call|>`. */
function readHarmonyCall(reader: Reader): readonly ReplyCall[] | null {
  const [name = ''] = reader.until('<|message|>').text.split(/[\s<]/);
  const json = reader.until('<|call|>').text.trim();
  return isName(name) && isObject(parseJson(json)) ? [{ name, arguments: json }] : null;
}

/** Reads a JSON list, or names that are each followed by their arguments. */
function readMistralCalls(reader: Reader): readonly ReplyCall[] | null {
  const { text } = reader.until('</s>', '[/TOOL_CALLS]');
  const inner = text.trim();
  if (inner.startsWith('[') || inner.startsWith('{')) return readJsonCalls(inner);
  const calls = inner.split('[TOOL_CALLS]').map((one): ReplyCall | null => {
    const at = one.indexOf('{');
    const json = at < 0 ? '' : one.slice(at).trim();
    const [name = ''] = one.slice(0, Math.max(at, 0)).split(/\[(?:CALL_ID|ARGS)\]/);
    return isName(name.trim()) && isObject(parseJson(json))
      ? { name: name.trim(), arguments: json }
      : null;
  });
  return calls.every((call) => call !== null) ? calls : null;
}

/** Reads a JSON text with one call or a list of calls. */
function readJsonCalls(text: string): readonly ReplyCall[] | null {
  const value = parseJson(quoteLargeIntegers(text.trim()));
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  const calls = values.map((one): ReplyCall | null => {
    const call = isObject(one) && isObject(one['function']) ? one['function'] : one;
    if (!isObject(call)) return null;
    const { name = call['function'], arguments: given = call['parameters'] } = call;
    if (typeof name !== 'string' || !isName(name)) return null;
    const args = typeof given === 'string' ? given : JSON.stringify(given ?? {});
    return { name, arguments: args };
  });
  return calls.length > 0 && calls.every((call) => call !== null) ? calls : null;
}

function isName(text: string): boolean {
  return /^[\w.-]{1,128}$/.test(text);
}

function unquote(text: string): string {
  const trimmed = text.trim();
  const quote = trimmed.charAt(0);
  return (quote === '"' || quote === "'") && trimmed.endsWith(quote)
    ? trimmed.slice(1, -1)
    : trimmed;
}

/** Returns the schema of a property of a tool; empty if there is none. */
function getProperty({
  tools,
  name,
  property,
}: {
  readonly tools: Tools;
  readonly name: string;
  readonly property: string;
}): JsonObject {
  const properties = tools.find((tool) => tool.name === name)?.parameters['properties'];
  const schema = isObject(properties) ? properties[property] : undefined;
  return isObject(schema) ? schema : {};
}

/** Returns the value of a parameter: a text if its schema wants one, else JSON where it is JSON. */
function toValue(text: string, { type }: JsonObject): unknown {
  const value = text.replace(/^\r?\n/, '').replace(/\r?\n$/, '');
  if (type === 'string') return value;
  const parsed = parseJson(quoteLargeIntegers(value));
  return parsed === undefined ? value : parsed;
}

/**
 * Returns the tool calls that a model wrote as text, in order.
 *
 * The whole text must be calls, fenced or not: each names a tool of the request, has an object as
 * its arguments, and has no keys that calls do not have. If the text contains anything else, it is
 * an answer, and the result is empty. Whether the arguments fit the tool's schema is checked later,
 * as for other calls.
 */
export function parseCallsInContent(text: string, tools: Tools): readonly ReplyCall[] {
  if (tools.length === 0) return [];
  const json = removeFence(text);
  if (!json.startsWith('{') && !json.startsWith('[')) return [];
  const calls = listCandidates(parseJson(quoteLargeIntegers(json))).map((candidate) =>
    parseCall(candidate, tools),
  );
  return calls.every((call) => call !== undefined) ? calls : [];
}

const FENCE = /^```[\w-]*[ \t]*\r?\n([^]*?)\r?\n?```$/;

function removeFence(text: string): string {
  const trimmed = text.trim();
  return (FENCE.exec(trimmed)?.[1] ?? trimmed).trim();
}

/** Returns the possible calls in a value: a list, a list in a wrapper, or one call. */
function listCandidates(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  const wrapped = isObject(value) ? (value['tool_calls'] ?? value['tools']) : undefined;
  return Array.isArray(wrapped) ? wrapped : [value];
}

function parseCall(candidate: unknown, tools: Tools): ReplyCall | undefined {
  if (!isCallLike(candidate)) return undefined;
  const value = isObject(candidate['function']) ? candidate['function'] : candidate;
  if (!isCallLike(value)) return undefined;
  const tool = tools.find(({ name }) => name === value['name']);
  if (tool === undefined) return undefined;
  const isBare = !('arguments' in value) && !('parameters' in value);
  if (isBare && requiresArguments(tool.parameters)) return undefined;
  const args = parseObject(value['arguments'] ?? value['parameters']);
  return args === undefined ? undefined : { name: tool.name, arguments: JSON.stringify(args) };
}

/** The keys of a call, as written by servers and chat templates. */
const CALL_KEYS = new Set(['name', 'arguments', 'parameters', 'id', 'type', 'function']);

function isCallLike(value: unknown): value is Record<string, unknown> {
  return isObject(value) && Object.keys(value).every((key) => CALL_KEYS.has(key));
}

function requiresArguments({ required }: JsonObject): boolean {
  return Array.isArray(required) && required.length > 0;
}

/**
 * Returns arguments as an object, even if they are absent or encoded twice; undefined if unusable.
 */
function parseObject(value: unknown): Record<string, unknown> | undefined {
  if (value === undefined || value === null || value === '') return {};
  const parsed = typeof value === 'string' ? parseJson(quoteLargeIntegers(value)) : value;
  return isObject(parsed) && findHazard(parsed) === undefined ? parsed : undefined;
}
