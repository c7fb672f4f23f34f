import { INVOKE } from '../../core/catalog/catalog.js';
import type { Json, JsonObject } from '../../core/json.js';
import { parseArguments, type ParsedArguments } from './arguments.js';

/** By which words models write a call of `invoke_tool`. */
const NAMES = ['tool', 'name'];
const ARGUMENTS = ['arguments', 'parameters'];
const EXAMPLE = '{"tool": "<name>", "arguments": {…}}';

/** The call that `invoke_tool` was asked for; whether there is such a tool is judged elsewhere. */
export type InvokedCall =
  | { readonly ok: true; readonly name: string; readonly value: JsonObject }
  | Extract<ParsedArguments, { ok: false }>;

/**
 * Reads the arguments of `invoke_tool`: the tool's name and its arguments, as an object or as JSON
 * text of one; none at all are an empty object. What is more would be lost, and is refused.
 */
export function readInvokedCall(given: JsonObject): InvokedCall {
  const [name, otherName] = valuesOf(given, NAMES);
  if (typeof name !== 'string' || name === '') {
    return wrong(`${INVOKE} names no tool. Send ${EXAMPLE}.`);
  }
  const [asked = {}, otherArguments] = valuesOf(given, ARGUMENTS);
  const stray =
    Object.keys(given).find((key) => ![...NAMES, ...ARGUMENTS].includes(key)) ??
    (otherName !== undefined && otherName !== name ? 'name' : undefined) ??
    (otherArguments === undefined ? undefined : 'parameters');
  if (stray !== undefined) {
    const said = JSON.stringify(stray.slice(0, 64));
    return wrong(
      `${INVOKE} takes no ${said}: what ${name.slice(0, 64)} is to be given belongs in \`arguments\`. Send ${EXAMPLE}.`,
    );
  }
  const parsed = parseArguments(typeof asked === 'string' ? asked : JSON.stringify(asked));
  if (parsed.ok) return { ok: true, name, value: parsed.value };
  // Of the whole it is the inner part that is wrong; else a model mends the wrong one.
  const { type, message } = parsed.problem;
  return { ok: false, problem: { type, message: `In \`arguments\` of ${INVOKE}: ${message}` } };
}

/** What is given under these keys, in their order. */
function valuesOf(given: JsonObject, keys: readonly string[]): readonly (Json | undefined)[] {
  return keys.map((key) => given[key]).filter((value) => value !== undefined && value !== null);
}

function wrong(message: string): Extract<InvokedCall, { ok: false }> {
  return { ok: false, problem: { type: 'invalid_arguments', message } };
}
