/** Proxies and readers close a connection that is silent for about a minute. */
const KEEP_ALIVE_MS = 15_000;
/** Texts that wait for a reader, in UTF-16 units; what comes after them is read when there is room. */
const BUFFERED_UNITS = 64 * 1024;

const encoder = new TextEncoder();

interface StreamOptions {
  /** Aborted when the stream is over, however it ends. */
  readonly over: AbortController;
  /** How long the reader may take to read what was sent. */
  readonly readMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Returns the response that sends texts, each of which is one or more server-sent events. */
export function sseResponse(blocks: AsyncIterable<string>, options: StreamOptions): Response {
  return streamResponse(blocks, { type: 'text/event-stream', keepAlive: ':\n\n', ...options });
}

/**
 * Returns the response that sends texts of a type; `keepAlive` is one that readers ignore. It takes a text from `blocks` only when
 * the reader has room, so a slow reader costs no memory; one that reads nothing within `readMs` is
 * disconnected, and may come back at its position.
 */
export function streamResponse(
  blocks: AsyncIterable<string>,
  {
    type,
    keepAlive: silent,
    over,
    readMs,
    headers = {},
  }: StreamOptions & { readonly type: string; readonly keepAlive: string },
): Response {
  const silence = encoder.encode(silent);
  const iterator = blocks[Symbol.asyncIterator]();
  let keepAlive: NodeJS.Timeout | undefined;
  let stalled: NodeJS.Timeout | undefined;
  const end = (): void => {
    clearInterval(keepAlive);
    clearTimeout(stalled);
    over.abort();
    void iterator.return?.().catch(() => undefined);
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(silence);
        keepAlive = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(silence);
        }, KEEP_ALIVE_MS);
        keepAlive.unref();
      },
      async pull(controller) {
        clearTimeout(stalled);
        try {
          const next = await iterator.next();
          if (next.done) {
            end();
            controller.close();
            return;
          }
          controller.enqueue(encoder.encode(next.value));
          stalled = setTimeout(() => {
            end();
            controller.error(tooSlow());
          }, readMs);
          stalled.unref();
        } catch (error) {
          end();
          controller.error(error);
        }
      },
      cancel: end,
    },
    { highWaterMark: BUFFERED_UNITS, size: (chunk) => chunk?.byteLength ?? 0 },
  );
  return new Response(body, {
    headers: {
      'content-type': `${type}; charset=utf-8`,
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
      ...headers,
    },
  });
}

/** Returns one server-sent event. `data` has no line break, because it is JSON. */
export function sseEvent({
  id,
  event,
  data,
}: {
  readonly id?: string;
  readonly event?: string;
  readonly data: string;
}): string {
  return `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`;
}

/** The adapter logs the error, of which the place in the code says nothing. */
function tooSlow(): Error {
  const error = new Error('a reader of a stream did not read in time, and was disconnected');
  error.stack = error.message;
  return error;
}
