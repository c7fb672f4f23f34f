import { type JsonObject, isObject, parseForeignJson, isRecord } from '../../core/text/json.js';
import type { CallProblem } from '../../core/transcript/messages.js';
import { nearestFirst } from '../../validation/near-names.js';

const SPACE = /[\t\n\r ]*/y;
const PLAIN = /[ !#-[\]-\uffff]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const LITERAL = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;

const SAMPLE_AROUND = 30;

type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma' | 'end';
type Scanned = { readonly ok: boolean; readonly at: number };

/** How far a JSON value extends from its start. */
interface ScannedValue {
  readonly complete: boolean;
  /** The offset after a complete value, or of the first wrong character. */
  readonly at: number;
  /** How many keys were read with their colons. */
  readonly keys: number;
  /** What was expected at the fault, for `describeExpected`. */
  readonly expected: Expected | 'closing quote';
  /** The bracket that is open at the fault. */
  readonly inside: string | undefined;
}

/**
 * Returns the offset in UTF-16 units where a text stops being JSON; `text.length` if it only ends
 * too early. The messages of `JSON.parse` lack the position in half of the cases, and differ by
 * version.
 */
export function jsonFaultPosition(text: string): number {
  const { complete, at } = scanJsonValue(text, matchAt(SPACE, text, 0));
  return complete ? at + matchAt(SPACE, text, at) : at;
}

/**
 * Describes the fault with a short sample of the text; `ending` starts the sentence about a
 * truncated text.
 */
export function describeFault(
  text: string,
  position: number,
  { ending }: { readonly ending: string },
): string {
  const around = JSON.stringify(
    text.slice(Math.max(0, position - SAMPLE_AROUND), position + SAMPLE_AROUND),
  );
  return position >= text.length
    ? `${ending} too early, after ${text.length} characters, with ${around}`
    : `character ${JSON.stringify(text[position])} at position ${position} is wrong, in ${around}`;
}

/** Scans one JSON value from `start` and nothing after it, in time proportional to the value. */
export function scanJsonValue(text: string, start: number): ScannedValue {
  const open: string[] = [];
  let expected: Expected = 'value';
  let keys = 0;
  let at = start;
  for (; at < text.length; at += matchAt(SPACE, text, at)) {
    const character = text[at] ?? '';
    const inside = open.at(-1);
    if (closes(character, expected, inside)) {
      open.pop();
      expected = open.length === 0 ? 'end' : 'comma';
      at += 1;
    } else if (expected === 'colon' || expected === 'comma') {
      if (character !== (expected === 'colon' ? ':' : ',')) break;
      if (expected === 'colon') keys += 1;
      expected = expected === 'comma' && inside === '{' ? 'key' : 'value';
      at += 1;
    } else if (expected.startsWith('value') && (character === '{' || character === '[')) {
      open.push(character);
      expected = character === '{' ? 'key or }' : 'value or ]';
      at += 1;
    } else {
      const isKey = expected.startsWith('key');
      const scanned = isKey || character === '"' ? scanString(text, at) : scanLiteral(text, at);
      const inText = scanned.at > at && text[at] === '"';
      at = scanned.at;
      if (!scanned.ok) {
        return { complete: false, at, keys, expected: inText ? 'closing quote' : expected, inside };
      }
      if (isKey) expected = 'colon';
      else expected = open.length === 0 ? 'end' : 'comma';
    }
    if (expected === 'end') return { complete: true, at, keys, expected, inside };
  }
  return { complete: false, at, keys, expected, inside: open.at(-1) };
}

/** Describes what was expected where a value breaks off. */
export function describeExpected({ expected, inside }: ScannedValue): string {
  switch (expected) {
    case 'closing quote':
      return 'the closing quote (in a text, line breaks are \\n and quotes \\")';
    case 'colon':
      return '":"';
    case 'comma':
      return `"," or "${inside === '{' ? '}' : ']'}"`;
    case 'key':
      return 'a key in double quotes';
    case 'key or }':
      return 'a key in double quotes or "}"';
    case 'value':
      return 'a value';
    case 'value or ]':
      return 'a value or "]"';
    case 'end':
      return 'nothing more';
  }
}

function closes(character: string, expected: Expected, inside: string | undefined): boolean {
  if (character === '}') {
    return inside === '{' && (expected === 'comma' || expected === 'key or }');
  }
  return character === ']' && inside === '[' && (expected === 'comma' || expected === 'value or ]');
}

/** Scans in parts: one expression for the whole string would exhaust the stack on long strings. */
function scanString(text: string, start: number): Scanned {
  if (text[start] !== '"') return { ok: false, at: start };
  let at = start + 1;
  for (;;) {
    at += matchAt(PLAIN, text, at);
    if (text[at] === '"') return { ok: true, at: at + 1 };
    const escape = matchAt(ESCAPE, text, at);
    if (escape === 0) return { ok: false, at };
    at += escape;
  }
}

function scanLiteral(text: string, at: number): Scanned {
  const length = matchAt(LITERAL, text, at);
  return { ok: length > 0, at: at + length };
}

function matchAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0].length ?? 0;
}

const MAX_DEPTH = 64;

/**
 * Describes why parsed JSON is unsafe to use: keys that could reach a prototype, more than 64
 * levels, or a number beyond the range of a double. Returns undefined if it is safe.
 *
 * Walks without recursion, because the model chooses the depth and the stack is limited.
 */
export function findHazard(root: unknown): string | undefined {
  const waiting: { readonly value: unknown; readonly depth: number }[] = [
    { value: root, depth: 0 },
  ];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value } = next;
    if (typeof value === 'number' && !Number.isFinite(value)) {
      return 'a number is too large; send it as text';
    }
    if (typeof value !== 'object' || value === null) continue;
    const depth = next.depth + 1;
    if (depth > MAX_DEPTH) return `a value is nested deeper than ${MAX_DEPTH} levels`;
    const key = hazardousKey(value);
    if (key !== undefined) return `the key "${key}" is refused`;
    for (const item of Object.values(value)) waiting.push({ value: item, depth });
  }
  return undefined;
}

function hazardousKey(value: object): string | undefined {
  if (Object.hasOwn(value, '__proto__')) return '__proto__';
  if (!Object.hasOwn(value, 'constructor')) return undefined;
  const { constructor } = value as { constructor?: unknown };
  const reaches = isObject(constructor) && Object.hasOwn(constructor, 'prototype');
  return reaches ? 'constructor.prototype' : undefined;
}

const MAX_NAMES = 40;

/** The arguments of a call as an object, or the problem that the model reads. */
export type ParsedArguments =
  | { readonly ok: true; readonly value: JsonObject }
  | { readonly ok: false; readonly problem: CallProblem };

/**
 * Parses the arguments of a call as a model wrote them.
 *
 * Empty text becomes an empty object, and an object that was encoded twice is accepted: small
 * models often write both. Keys that could reach a prototype, and nesting deeper than 64 levels,
 * are refused.
 */
export function parseArguments(text: string): ParsedArguments {
  if (text.trim() === '') return { ok: true, value: {} };
  const first = parse(text);
  if (!first.ok) return first;
  const inner = typeof first.value === 'string' ? first.value.trimStart() : '';
  const parsed = inner.startsWith('{') ? parse(inner) : first;
  if (!parsed.ok) return parsed;
  const { value } = parsed;
  if (!isRecord(value)) return invalid(`the arguments are ${kindOf(value)}, not a JSON object`);
  const hazard = findHazard(value);
  if (hazard !== undefined) return invalid(hazard);
  return { ok: true, value };
}

/**
 * Returns the problem for a call to a tool that the agent does not have. `hint` follows the names.
 */
export function unknownTool(
  name: string,
  known: readonly string[],
  { atMost = MAX_NAMES, hint = '' }: { readonly atMost?: number; readonly hint?: string } = {},
): CallProblem {
  const shown = nearestFirst(name, known).slice(0, atMost);
  const more = known.length > shown.length ? `, and ${known.length - shown.length} more` : '';
  const tools = known.length === 0 ? 'none; answer in text' : shown.join(', ') + more;
  const requested = JSON.stringify(name.slice(0, 100));
  return {
    type: 'unknown_tool',
    message: `Unknown tool ${requested}. Tools: ${tools}.${hint}`,
  };
}

type Parsed =
  | { readonly ok: true; readonly value: unknown }
  | Extract<ParsedArguments, { ok: false }>;

function parse(text: string): Parsed {
  const parsed = parseForeignJson(text);
  if (parsed.ok) return parsed;
  if (parsed.isJson) return invalid(parsed.problem);
  else {
    const fault = describeFault(text, jsonFaultPosition(text), { ending: 'they end' });
    const message = `The arguments are not JSON: ${fault}. Send one complete JSON object.`;
    return { ok: false, problem: { type: 'invalid_json', message } };
  }
}

function invalid(fault: string): Extract<ParsedArguments, { ok: false }> {
  const message = `${fault[0]?.toUpperCase()}${fault.slice(1)}. Send one JSON object, such as {"name": "value"}.`;
  return { ok: false, problem: { type: 'invalid_arguments', message } };
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'an array';
  return value === null ? 'null' : `a ${typeof value}`;
}
