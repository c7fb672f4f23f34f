import type { JSONRPCMessage, MessageExtraInfo, Transport } from '@modelcontextprotocol/client';
import type { FindRequest } from './wire-messages.js';

/** The code of the error that replaces an answer that will not arrive. */
export const STREAM_ENDED = -32_990;

/**
 * Maximum unsolicited messages within `WINDOW_MS`: progress, logs, requests from the server,
 * answers without a request, and lines that are not messages.
 */
const MAX_UNSOLICITED = 10_000;
const WINDOW_MS = 60_000;

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
    const isAnswer = !('method' in message) && message.id !== undefined && open.delete(message.id);
    if (!isAnswer) countUnsolicited();
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
    await send(message, { ...options, onRequestStreamEnd });
  };

  const find: FindRequest = (given) => {
    const id = [...open.keys()].find((each) => String(each) === String(given));
    return id === undefined ? null : { id, method: open.get(id) ?? '' };
  };
  return { breach, unreadable: countUnsolicited, reason: () => broken, find };
}
