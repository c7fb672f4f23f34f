import { type Json, type JsonObject, isObject, parseJson } from '../../core/text/json.js';
import type { ModelTool } from '../model.js';

/** The next reply of the demo model: one call, or the answer. */
export type DemoMove =
  | { readonly type: 'call'; readonly tool: string; readonly input: JsonObject }
  | { readonly type: 'answer'; readonly text: string };

/** What stands for a value in documents and examples. */
const PLACEHOLDERS: readonly Json[] = ['…', '...'];

/** Returns the call with the JSON object in the words after the tool's name, or else with the texts. */
export function callWith(
  tool: Pick<ModelTool, 'name' | 'parameters'>,
  words: string,
  texts: readonly string[],
): DemoMove {
  const written = writtenObject(words);
  if (written === undefined && /^["'`]?\s*\{/.test(words)) {
    return answer(
      `The arguments after ${tool.name} are not JSON. Write, for example: ${exampleOf(tool)}`,
    );
  }
  const move: DemoMove =
    written === undefined
      ? callWithValues(tool, texts)
      : { type: 'call', tool: tool.name, input: written };
  if (move.type === 'answer') return move;
  const open = Object.entries(move.input).find(([, value]) => PLACEHOLDERS.includes(value ?? null));
  if (open === undefined) return move;
  return answer(
    `${JSON.stringify(open[1])} stands for the \`${open[0]}\` of ${tool.name}: put a value in its place.`,
  );
}

function callWithValues(
  { name, parameters }: Pick<ModelTool, 'name' | 'parameters'>,
  texts: readonly string[],
): DemoMove {
  const values = texts.filter((text) => text !== name);
  const { input, missing } = fillArguments(parameters, values);
  if (missing === undefined) return { type: 'call', tool: name, input };
  return answer(
    `${name} needs \`${missing}\`: put its value in quotes, in the order of the schema, or write the arguments as JSON.`,
  );
}

/** Assigns the values to the required properties in order, or else to the first property. */
function fillArguments(
  { properties, required }: JsonObject,
  values: readonly string[],
): { readonly input: JsonObject; readonly missing: string | undefined } {
  const schemas = isObject(properties) ? properties : {};
  const needed = Array.isArray(required) ? required.map(String) : [];
  const names = needed.length > 0 ? needed : Object.keys(schemas).slice(0, 1);
  const pairs = names
    .slice(0, values.length)
    .map((name, index) => [name, toValue(values[index] ?? '', schemas[name])] as const);
  return { input: Object.fromEntries(pairs), missing: needed[values.length] };
}

function toValue(text: string, schema: unknown): Json {
  const isText = !isObject(schema) || schema['type'] === 'string';
  const value = isText ? undefined : parseJson(text);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  return value === undefined ? text : (value as Json);
}

/** Whether the question names a tool: quoted, with an underscore, after "call", or before JSON. */
export function isNamed(tool: string, question: string): boolean {
  if (quotedTexts(question).includes(tool)) return true;
  const words = question.split(/[^\w{-]+|(?=\{)/);
  return words.some((word, at) => {
    if (word !== tool) return false;
    const isCalled = words[at - 1]?.toLowerCase() === 'call';
    return tool.includes('_') || isCalled || words[at + 1]?.startsWith('{') === true;
  });
}

/** Returns the JSON object in a text; undefined if there is none. */
function writtenObject(text: string): JsonObject | undefined {
  const from = text.indexOf('{');
  const value = from < 0 ? undefined : parseJson(objectAtStart(text.slice(from)));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  return isObject(value) ? (value as JsonObject) : undefined;
}

/** Returns a message that makes the demo model call the tool. */
export function exampleOf({
  name,
  parameters: { properties, required },
}: Pick<ModelTool, 'name' | 'parameters'>): string {
  const schemas = isObject(properties) ? properties : {};
  const needed = Array.isArray(required) ? required.map(String) : [];
  const values = needed.map((key) => [key, sampleOf(schemas[key])] as const);
  return `${name} ${JSON.stringify(Object.fromEntries(values))}`;
}

/** Samples of texts with a format, so that an example can be pasted. */
const SAMPLES: Readonly<Record<string, string>> = {
  'date-time': '2026-01-31T09:00:00Z',
  date: '2026-01-31',
  time: '09:00:00',
  email: 'ann@example.com',
  uri: 'https://example.com',
};

function sampleOf(schema: unknown): Json {
  const { type, enum: options, properties, format } = isObject(schema) ? schema : {};
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a schema is JSON
  if (Array.isArray(options)) return (options[0] ?? null) as Json;
  if (type === 'number' || type === 'integer') return 1;
  if (type === 'boolean') return true;
  if (type === 'array') return [];
  if (type !== 'object' || !isObject(properties)) return SAMPLES[String(format)] ?? 'text';
  return Object.fromEntries(Object.entries(properties).map(([key, one]) => [key, sampleOf(one)]));
}

/** Finds a tool's name, but not as a key of JSON. */
export const calledIn = (name: string) =>
  new RegExp(`(?<![\\w-])${name}(?![\\w-])(?!"\\s*:)["'\`]?`, 'g');

export function quotedTexts(question: string): string[] {
  const quotes = /"([^"]+)"|`([^`]+)`|(?<!\w)'([^']+)'(?!\w)/g;
  return [...question.matchAll(quotes)].map((match) => match.slice(1).find(Boolean) ?? '');
}

export function answer(text: string): DemoMove {
  return { type: 'answer', text };
}

/** A call that a question writes, or the answer that says what is wrong with it. */
export interface NamedCall {
  readonly tool: string;
  readonly move: DemoMove;
}

/** A word between the name of a tool and what it gets. */
const JOINT = /^\s+(?:with|and)(?=[\s"'`{])/i;

/** One or more texts in quotes. */
const QUOTED = /^(?:[\s,]*(?:"[^"]+"|`[^`]+`|'[^']+'(?!\w)))+/;

/**
 * Returns the calls that a question writes one after another: each name of a tool with JSON or texts
 * in quotes directly after it. A name within them is no call.
 */
export function callsInSequence(
  question: string,
  tools: readonly ModelTool[],
): readonly NamedCall[] {
  const found = tools
    .flatMap((tool) =>
      [...question.matchAll(calledIn(tool.name))].map((match) => {
        return { tool, from: match.index, to: match.index + match[0].length };
      }),
    )
    .toSorted((one, other) => one.from - other.from);
  const calls: NamedCall[] = [];
  let end = 0;
  for (const { tool, from, to } of found) {
    if (from < end) continue;
    const words = question.slice(to).replace(JOINT, (joint) => ' '.repeat(joint.length));
    const isJson = /^\s*\{/.test(words);
    const written = isJson ? objectAtStart(words) : (QUOTED.exec(words)?.[0] ?? '');
    if (written === '' || !(isJson || isNamed(tool.name, question.slice(0, to)))) continue;
    calls.push({ tool: tool.name, move: callWith(tool, written, quotedTexts(written)) });
    end = to + written.length;
  }
  return calls;
}

/** Returns a text up to the end of the JSON object at its start; all of it if the object has no end. */
function objectAtStart(text: string): string {
  let depth = 0;
  for (const { 0: part, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]/gs)) {
    if (part === '{') depth += 1;
    if (part === '}') depth -= 1;
    if (depth === 0) return text.slice(0, index + part.length);
  }
  return text;
}
