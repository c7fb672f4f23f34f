import type {
  JSONRPCMessage,
  JSONRPCRequest,
  MessageExtraInfo,
  Transport,
} from '@modelcontextprotocol/client';
import { isObject } from '../core/text/json.js';

/** Returns the id and method of a request in progress, or null if none has this id. */
export type FindRequest = (id: unknown) => OpenRequest | null;

/** A request that waits for its answer. */
interface OpenRequest {
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

/** Maximum bytes of one message. The largest stored attachment, of 20 MB, has 27 MB as base64. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** The problem with a longer message. */
export const TOO_LONG = `it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`;
/** Maximum brackets and commas in one message; each may become a value of 50 bytes or more. */
const MAX_STRUCTURE = 2_000_000;
const [COMMA, BRACKET, BRACE] = [0x2c, 0x5b, 0x7b];

/** Returns the problem with a message's text before it is parsed, or null if there is none. */
export function mcpTextProblem(text: Uint8Array): string | null {
  if (text.length > MAX_MESSAGE_BYTES) return TOO_LONG;
  if (text.length <= MAX_STRUCTURE) return null;
  let structure = 0;
  for (const byte of text) {
    if (byte === COMMA || byte === BRACKET || byte === BRACE) structure += 1;
  }
  return structure > MAX_STRUCTURE
    ? `it sent a message of more than ${MAX_STRUCTURE} values`
    : null;
}

/** The code of the error that replaces an answer that will not arrive. */
export const STREAM_ENDED = -32_990;

/**
 * Maximum unsolicited messages within `WINDOW_MS`: progress, logs, requests from the server,
 * answers without a request, and lines that are not messages.
 */
const MAX_UNSOLICITED = 10_000;
const WINDOW_MS = 60_000;

/**
 * Removes elicitation from the handshake of older versions of the protocol: such a server would ask
 * within an open call, which cannot wait for a person. It learns that nobody can be asked.
 */
function withoutElicitation(message: JSONRPCRequest): JSONRPCRequest {
  const { method, params } = message;
  if (method !== 'initialize' || !isObject(params?.['capabilities'])) return message;
  const { elicitation: _, ...capabilities } = params['capabilities'];
  return { ...message, params: { ...params, capabilities } };
}

/** The guard of a transport. */
export interface TransportGuard {
  /**
   * Ends the connection because of a breach by the server; calls in progress fail with this reason.
   */
  readonly breach: (reason: string) => void;
  /** Counts a line that is not a message. */
  readonly unreadable: () => void;
  /** Returns why the connection was ended, or null if the server did not cause its end. */
  readonly reason: () => string | null;
  /** Returns the request in progress with this id, which may be a number or its text. */
  readonly find: FindRequest;
}

/**
 * Watches the messages of a server: a server that floods its client loses the connection, and a
 * request whose stream has ended is answered with an error.
 */
export function guardTransport(transport: Transport): TransportGuard {
  /** The methods of the requests in progress, by id. */
  const open = new Map<string | number, string>();
  let handler: Transport['onmessage'];
  let unsolicited = 0;
  let windowBegan = performance.now();
  let broken: string | null = null;

  const answer = (id: string | number, message: string): void =>
    handler?.({ jsonrpc: '2.0', id, error: { code: STREAM_ENDED, message } });

  const breach = (reason: string): void => {
    if (broken !== null) return;
    broken = reason;
    for (const id of open.keys()) answer(id, `${reason}; the connection was ended`);
    open.clear();
    transport.close().catch(() => undefined);
  };

  const countUnsolicited = (): void => {
    const now = performance.now();
    if (now - windowBegan > WINDOW_MS) [unsolicited, windowBegan] = [0, now];
    unsolicited += 1;
    if (unsolicited <= MAX_UNSOLICITED) return;
    breach(`it sent more than ${MAX_UNSOLICITED} unsolicited messages within a minute`);
  };

  const receive = (message: JSONRPCMessage, extra?: MessageExtraInfo): void => {
    if (broken !== null) return;
    const answersOpen =
      !('method' in message) && message.id !== undefined && open.delete(message.id);
    if (!answersOpen) countUnsolicited();
    if (broken !== null) return;
    handler?.(message, extra);
  };

  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    enumerable: true,
    get: () => (handler === undefined ? undefined : receive),
    set: (given: Transport['onmessage']) => {
      handler = given === receive ? handler : given;
    },
  });

  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    if (!('method' in message && 'id' in message)) return await send(message, options);
    const { id, method } = message;
    open.set(id, method);
    // The SDK keeps waiting for an answer after its stream has ended; the caller must not wait.
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.();
      if (open.delete(id)) answer(id, 'the connection ended before the answer came');
    };
    await send(withoutElicitation(message), { ...options, onRequestStreamEnd });
  };

  const find: FindRequest = (given) => {
    const id = [...open.keys()].find((each) => String(each) === String(given));
    return id === undefined ? null : { id, method: open.get(id) ?? '' };
  };
  return { breach, unreadable: countUnsolicited, reason: () => broken, find };
}
