import { once } from 'node:events';
import type { Exchange } from './http-server.js';

/** Proxies and readers close a connection that is silent for about a minute. */
const KEEP_ALIVE_MS = 15_000;

/** A response that continues for as long as it is read. */
export interface LiveResponse {
  /** Aborts when the reader is gone. */
  readonly gone: AbortSignal;
  /** Resolves when the reader has room for more; rejects when it is gone. */
  write(text: string): Promise<void>;
  end(): void;
}

/**
 * Starts a response. `keepAlive` is sent regularly; readers ignore it. A reader that does not read
 * what was sent within `stalledMs` is disconnected; it may reconnect at its position.
 */
export function liveResponse(
  { request, response, limits }: Exchange,
  { type, keepAlive }: { readonly type: string; readonly keepAlive: string },
): LiveResponse {
  const gone = new AbortController();
  if (response.destroyed) {
    gone.abort();
    return {
      gone: gone.signal,
      write: () => Promise.reject(gone.signal.reason),
      end: () => undefined,
    };
  }
  response.writeHead(200, {
    'content-type': type,
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'x-content-type-options': 'nosniff',
  });
  request.socket.setNoDelay(true);
  response.write(keepAlive);
  const timer = setInterval(() => {
    if (!response.writableNeedDrain) response.write(keepAlive);
  }, KEEP_ALIVE_MS);
  // An error is followed by `close`.
  response.on('error', () => undefined);
  response.once('close', () => {
    clearInterval(timer);
    gone.abort();
  });
  return {
    gone: gone.signal,
    async write(text) {
      gone.signal.throwIfAborted();
      if (response.write(text)) return;
      const stalled = setTimeout(() => response.destroy(), limits.stalledMs);
      try {
        await once(response, 'drain', { signal: gone.signal });
      } finally {
        clearTimeout(stalled);
      }
    },
    end: () => void response.end(),
  };
}
