import { INVOKE } from '../../core/catalog/catalog.js';
import type { Json, JsonObject } from '../../core/json.js';
import { parseArguments, type ParsedArguments } from './arguments.js';

/** The keys that models use in a call of `invoke_tool`. */
const NAMES = ['tool', 'name'];
const ARGUMENTS = ['arguments', 'parameters'];
const EXAMPLE = '{"tool": "<name>", "arguments": {…}}';

/** The call that `invoke_tool` stands for; the caller checks whether there is such a tool. */
export type InvokedCall =
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
