import { isObject } from '../core/json.js';

/** Returns the id and method of a request in progress, or null if none has this id. */
export type FindRequest = (id: unknown) => OpenRequest | null;

/** A request that waits for its answer. */
export interface OpenRequest {
  readonly id: string | number;
  readonly method: string;
}

/**
 * The field in which the result of `tools/call` and `tools/list` passes the SDK, which would refuse
 * a whole message because of one field of an unexpected type.
 */
const RAW = 'perdure/result';
const LIST = 'tools/list';
/** The methods whose results perdure reads itself. */
const READ_HERE: readonly string[] = [LIST, 'tools/call'];
/** Maximum parts of one result that are read. */
const MAX_PARTS = 1_000;
const INTERNAL_ERROR = -32_603;

/**
 * Converts a message of a server to a form that the SDK accepts. Optional fields may be null, the
 * answer to a request may have an id of another type or lack the version, and a result may be any
 * value. Other values are returned unchanged.
 */
export function lenientMessage(message: unknown, find: FindRequest): unknown {
  try {
    return isObject(message) ? lenient(message, find) : message;
  } catch {
    // A value that is nested too deeply to be rebuilt.
    return message;
  }
}

function lenient(message: Record<string, unknown>, find: FindRequest): unknown {
  const { id, method, result, error } = message;
  if (typeof method === 'string') return { ...withoutNulls(message), jsonrpc: '2.0' };
  const request = find(id);
  if (request === null && result === undefined && error === undefined) return message;
  const head = { jsonrpc: '2.0', ...(present(id) && { id: request?.id ?? id }) };
  // A result proves that the request was executed, whatever stands beside it.
  if (present(error) && !present(result)) return { ...head, error: lenientError(error) };
  return { ...head, result: lenientResult(result ?? null, request?.method ?? '') };
}

/** Returns whether a parsed message is an answer. */
export function isAnswer(message: unknown): message is Record<string, unknown> {
  return isObject(message) && !('method' in message) && ('result' in message || 'error' in message);
}

/** Returns whether perdure itself reads the results of a method. */
export function isReadHere(method: string): boolean {
  return READ_HERE.includes(method);
}

/** Returns what a server answered to `tools/call` or `tools/list`, unchanged. */
export function rawResult(result: unknown): unknown {
  return isObject(result) && RAW in result ? result[RAW] : result;
}

function lenientResult(result: unknown, method: string): unknown {
  if (!isReadHere(method)) return isObject(result) ? deepWithoutNulls(result) : result;
  // The server asks for input instead of answering; the SDK refuses that.
  if (isObject(result) && result['resultType'] === 'input_required') return result;
  const complete = { resultType: 'complete', [RAW]: withinParts(result) };
  return method === LIST
    ? { ...complete, ttlMs: 0, cacheScope: 'private', tools: [] }
    : { ...complete, content: [] };
}

/** Keeps the first parts of a result with too many, with a note about the omitted ones. */
function withinParts(result: unknown): unknown {
  if (!isObject(result)) return result;
  const { content } = result;
  if (!Array.isArray(content) || content.length <= MAX_PARTS) return result;
  const note = `[${content.length - MAX_PARTS} of ${content.length} parts of this result were omitted]`;
  return { ...result, content: [...content.slice(0, MAX_PARTS), { type: 'text', text: note }] };
}

function lenientError(error: unknown): unknown {
  if (!isObject(error)) {
    const message = typeof error === 'string' ? error : JSON.stringify(error);
    return { code: INTERNAL_ERROR, message };
  }
  const { code, message, data } = error;
  const given = Number(code);
  return {
    code: present(code) && Number.isSafeInteger(given) ? given : INTERNAL_ERROR,
    message: typeof message === 'string' ? message : JSON.stringify(error),
    ...(present(data) && { data }),
  };
}

function withoutNulls(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null));
}

/** Removes null fields of objects at every level, except in lists. */
function deepWithoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => deepWithoutNulls(item));
  if (!isObject(value)) return value;
  const entries = Object.entries(withoutNulls(value));
  return Object.fromEntries(entries.map(([name, item]) => [name, deepWithoutNulls(item)]));
}

function present(value: unknown): boolean {
  return value !== undefined && value !== null;
}
