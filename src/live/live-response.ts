import { once } from 'node:events';
import type { Exchange } from './http-server.js';

/** Proxies and readers take a connection for dead that is silent for a minute or so. */
const SIGN_OF_LIFE_MS = 15_000;

/** An answer that goes on for as long as somebody reads it. */
export interface LiveResponse {
  /** Aborts when the reader is gone. */
  readonly gone: AbortSignal;
  /** Resolves when the reader has room for more; rejects when it is gone. */
  write(text: string): Promise<void>;
  end(): void;
}

/**
 * Begins the answer. `signOfLife` is sent now and then; readers pass over it. A reader that does not take
 * what was sent within `stalledMs` is cut off, and comes back where it was or not at all.
 */
export function liveResponse(
  { request, response, limits }: Exchange,
  { type, signOfLife }: { readonly type: string; readonly signOfLife: string },
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
  response.write(signOfLife);
  const beating = setInterval(() => {
    if (!response.writableNeedDrain) response.write(signOfLife);
  }, SIGN_OF_LIFE_MS);
  // What cannot be sent any more, its closing tells.
  response.on('error', () => undefined);
  response.once('close', () => {
    clearInterval(beating);
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
