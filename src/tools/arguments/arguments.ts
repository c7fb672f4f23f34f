import { parseForeignJson } from '../../core/foreign-json.js';
import type { JsonObject } from '../../core/json.js';
import type { CallProblem } from '../../core/transcript/messages.js';
import { isObject } from '../../core/json.js';
import { describeFault, jsonFaultPosition } from './json-fault.js';
import { findHazard } from './json-hazard.js';
import { nearestFirst } from '../../validation/nearest.js';

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
  if (!isJsonObject(value)) return invalid(`the arguments are ${kindOf(value)}, not a JSON object`);
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

function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value);
}
