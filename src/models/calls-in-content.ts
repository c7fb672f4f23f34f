import { isObject, parseJson, type JsonObject } from '../core/json.js';
import { findHazard } from '../tools/arguments/json-hazard.js';
import type { ModelReply, ModelTool } from './model.js';

type Tools = readonly Pick<ModelTool, 'name' | 'parameters'>[];
type Call = ModelReply['calls'][number];

/** What a call may hold beside its name and arguments, as servers and templates write it. */
const CALL_KEYS = new Set(['name', 'arguments', 'parameters', 'id', 'type', 'function']);

const FENCE = /^```[\w-]*[ \t]*\r?\n([^]*?)\r?\n?```$/;

function unfenced(text: string): string {
  const trimmed = text.trim();
  return (FENCE.exec(trimmed)?.[1] ?? trimmed).trim();
}

/** Arguments as an object; also one that was encoded once more, or nothing at all. None that no call may have. */
function objectOf(value: unknown): Record<string, unknown> | undefined {
  if (value === undefined || value === null || value === '') return {};
  const read = typeof value === 'string' ? parseJson(value) : value;
  return isObject(read) && findHazard(read) === undefined ? read : undefined;
}

function wantsArguments({ required }: JsonObject): boolean {
  return Array.isArray(required) && required.length > 0;
}

function isCallLike(value: unknown): value is Record<string, unknown> {
  return isObject(value) && Object.keys(value).every((key) => CALL_KEYS.has(key));
}

function callOf(candidate: unknown, tools: Tools): Call | undefined {
  if (!isCallLike(candidate)) return undefined;
  const value = isObject(candidate['function']) ? candidate['function'] : candidate;
  if (!isCallLike(value)) return undefined;
  const tool = tools.find(({ name }) => name === value['name']);
  if (tool === undefined) return undefined;
  const isBare = !('arguments' in value) && !('parameters' in value);
  if (isBare && wantsArguments(tool.parameters)) return undefined;
  const given = objectOf(value['arguments'] ?? value['parameters']);
  return given === undefined ? undefined : { name: tool.name, arguments: JSON.stringify(given) };
}

/** What could be calls: a list, a list in a wrapper, or one thing. */
function candidatesOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  const wrapped = isObject(value) ? (value['tool_calls'] ?? value['tools']) : undefined;
  return Array.isArray(wrapped) ? wrapped : [value];
}

/**
 * The tool calls that a model wrote as text in place of asking for them, in order.
 *
 * All of the text must be calls, in a fence or not: each names a tool that the model was given, has an
 * object for arguments, and nothing that a call does not have. If anything else is among it, the text
 * is an answer and none are returned. Whether the arguments fit the tool's schema is judged where
 * those of other calls are.
 */
export function callsInContent(text: string, tools: Tools): ModelReply['calls'] {
  if (tools.length === 0) return [];
  const json = unfenced(text);
  if (!json.startsWith('{') && !json.startsWith('[')) return [];
  const calls = candidatesOf(parseJson(json)).map((candidate) => callOf(candidate, tools));
  return calls.every((call) => call !== undefined) ? calls : [];
}
