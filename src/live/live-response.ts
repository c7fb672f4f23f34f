import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';

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

/** Begins the answer. `signOfLife` is sent now and then; readers pass over it. */
export function liveResponse(
  request: IncomingMessage,
  response: ServerResponse,
  { type, signOfLife }: { readonly type: string; readonly signOfLife: string },
): LiveResponse {
  const gone = new AbortController();
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
      if (!response.write(text)) await once(response, 'drain', { signal: gone.signal });
    },
    end: () => void response.end(),
  };
}
