import type { JSONRPCMessage, MessageExtraInfo, Transport } from '@modelcontextprotocol/client';
import { withinLimits } from './message-limits.js';

/** The code of the error that stands for an answer which will not come. */
export const STREAM_ENDED = -32_990;

/**
 * What nobody asked for, in `WINDOW_MS`: progress, logs, requests of the server, answers to no request, and
 * what is no message.
 */
const MOST_UNASKED = 10_000;
const WINDOW_MS = 60_000;

/** What a transport is watched by. */
export interface TransportGuard {
  /** Ends the connection, because of what the server does; calls under way are told why. */
  readonly breach: (reason: string) => void;
  /** Counts what came and is no message. */
  readonly unreadable: () => void;
  /** Why the connection was ended; null where it was not, or not for what the server did. */
  readonly reason: () => string | null;
}

/**
 * Watches over what a server sends: results and lists are cut to size before they are read, and a server
 * that floods its client loses the connection.
 */
export function guardTransport(transport: Transport): TransportGuard {
  const open = new Set<string | number>();
  let handler: Transport['onmessage'];
  let unasked = 0;
  let windowBegan = performance.now();
  let broken: string | null = null;

  const answer = (id: string | number, message: string): void =>
    handler?.({ jsonrpc: '2.0', id, error: { code: STREAM_ENDED, message } });

  const breach = (reason: string): void => {
    if (broken !== null) return;
    broken = reason;
    for (const id of open) answer(id, `${reason}; the connection was ended`);
    open.clear();
    transport.close().catch(() => undefined);
  };

  const countUnasked = (): void => {
    const now = performance.now();
    if (now - windowBegan > WINDOW_MS) [unasked, windowBegan] = [0, now];
    unasked += 1;
    if (unasked <= MOST_UNASKED) return;
    breach(`it sent more than ${MOST_UNASKED} messages within a minute that nobody asked for`);
  };

  const receive = (message: JSONRPCMessage, extra?: MessageExtraInfo): void => {
    if (broken !== null) return;
    const isAnswer = !('method' in message) && message.id !== undefined && open.delete(message.id);
    if (!isAnswer) countUnasked();
    if (broken !== null) return;
    handler?.(withinLimits(message), extra);
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
    const id = 'method' in message && 'id' in message ? message.id : null;
    if (id === null) return await send(message, options);
    open.add(id);
    // The SDK waits for an answer although the stream that was to bring it has ended; a caller must not.
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.();
      if (open.delete(id)) answer(id, 'the connection ended before the answer came');
    };
    await send(message, { ...options, onRequestStreamEnd });
  };
  return { breach, unreadable: countUnasked, reason: () => broken };
}
