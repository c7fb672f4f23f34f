import { quoteLargeIntegers } from '../core/foreign-json.js';
import { isObject, parseJson, type JsonObject } from '../core/json.js';
import { findHazard } from '../tools/arguments/json-hazard.js';
import type { ModelTool, ReplyCall } from './model.js';

type Tools = readonly Pick<ModelTool, 'name' | 'parameters'>[];

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
