import type { JsonObject } from '../core/json.js';
import type { CallProblem } from '../core/messages.js';
import { isObject } from '../core/json.js';
import { jsonFaultPosition } from './json-fault.js';
import { nearestFirst } from './nearest.js';

const MAX_DEPTH = 64;
const SAMPLE_AROUND = 30;
const MAX_NAMES = 40;

export type ParsedArguments =
  | { readonly ok: true; readonly value: JsonObject }
  | { readonly ok: false; readonly problem: CallProblem };

/**
 * Reads the arguments of a call as a model wrote them.
 *
 * Empty text is an empty object, and an object that was encoded twice is accepted: both are habits of
 * small models. What could reach a prototype, or is nested deeper than 64 levels, is refused.
 */
export function parseArguments(text: string): ParsedArguments {
  if (text.trim() === '') return { ok: true, value: {} };
  const first = parse(text);
  if (!first.ok) return first;
  const inner = typeof first.value === 'string' ? first.value.trimStart() : '';
  const parsed = inner.startsWith('{') ? parse(inner) : first;
  if (!parsed.ok) return parsed;
  const { value } = parsed;
  if (!isJsonObject(value)) return invalid(`the arguments are ${kindOf(value)}, not a JSON object`);
  const hazard = findHazard(value);
  if (hazard !== undefined) return invalid(hazard);
  return { ok: true, value };
}

/** The problem of a call to a tool that the agent does not have. */
export function unknownTool(name: string, known: readonly string[]): CallProblem {
  const shown = nearestFirst(name, known).slice(0, MAX_NAMES);
  const more = known.length > shown.length ? `, and ${known.length - shown.length} more` : '';
  const tools = known.length === 0 ? 'there are no tools; answer in text' : shown.join(', ') + more;
  const asked = JSON.stringify(name.slice(0, 100));
  return { type: 'unknown_tool', message: `There is no tool ${asked}. Tools: ${tools}.` };
}

type Parsed =
  { readonly ok: true; readonly value: unknown } | Extract<ParsedArguments, { ok: false }>;

function parse(text: string): Parsed {
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch {
    const position = jsonFaultPosition(text);
    const around = JSON.stringify(
      text.slice(Math.max(0, position - SAMPLE_AROUND), position + SAMPLE_AROUND),
    );
    const fault =
      position >= text.length
        ? `they end too early, after ${text.length} characters, with ${around}`
        : `character ${JSON.stringify(text[position])} at position ${position} is wrong, in ${around}`;
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

function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value);
}

/** Walks without recursion: the depth of the text is the model's choice, that of our stack is not. */
function findHazard(root: object): string | undefined {
  const waiting: { readonly value: object; readonly depth: number }[] = [{ value: root, depth: 1 }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if (next.depth > MAX_DEPTH) return `the arguments are nested deeper than ${MAX_DEPTH} levels`;
    if (Object.hasOwn(next.value, '__proto__')) return 'the key "__proto__" is refused';
    const { constructor } = next.value as { constructor?: unknown };
    if (Object.hasOwn(next.value, 'constructor') && isObject(constructor)) {
      if (Object.hasOwn(constructor, 'prototype'))
        return 'the key "constructor.prototype" is refused';
    }
    for (const value of Object.values(next.value) as unknown[]) {
      if (typeof value === 'number' && !Number.isFinite(value)) {
        return 'a number is too large; send it as text';
      }
      if (typeof value === 'object' && value !== null) {
        waiting.push({ value, depth: next.depth + 1 });
      }
    }
  }
  return undefined;
}
