import type { IncomingMessage } from 'node:http';
import { NoRunError } from '../client/read-run.js';
import { InputError } from '../client/run-input.js';
import type { Refusal } from './admission.js';
import type { Feeds, OpenedStream } from './feeds.js';
import { liveResponse } from './live-response.js';
import type { Route } from './live-server.js';
import type { StreamEvent } from './stream-events.js';

/** A reader whose line broke comes back after so many milliseconds. */
const RETRY_MS = 1_000;

/**
 * A run's stream as server-sent events: `data` is one event as JSON, `id` its position, which
 * `Last-Event-ID` or `?after=` brings back.
 */
export function eventsRoute(feeds: () => Promise<Feeds>): Route {
  /** Most readers get the very same events, so each is written down once. */
  const written = new WeakMap<StreamEvent, string>();
  const textOf = (event: StreamEvent): string => {
    const known = written.get(event);
    if (known !== undefined) return known;
    const { position, ...data } = event;
    const text = `id: ${position}\ndata: ${JSON.stringify(data)}\n\n`;
    written.set(event, text);
    return text;
  };
  return async (id, request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const opened = await openStream(await feeds(), id, {
      after: positionIn(request),
      signal: gone.signal,
    });
    if ('status' in opened) return opened;
    if (opened.isPast) {
      opened.close();
      // Tells a browser not to come back.
      response.writeHead(204).end();
      return null;
    }
    const live = liveResponse(request, response, {
      type: 'text/event-stream',
      signOfLife: ':\n\n',
    });
    try {
      await live.write(`retry: ${RETRY_MS}\n\n`);
      for await (const batch of opened.batches) {
        await live.write(batch.map((event) => textOf(event)).join(''));
      }
    } catch (error) {
      if (!live.gone.aborted) throw error;
    } finally {
      opened.close();
    }
    live.end();
    return null;
  };
}

function positionIn({ headers, url }: IncomingMessage): string {
  const last = headers['last-event-id'];
  if (typeof last === 'string' && last !== '') return last;
  return new URL(url ?? '/', 'http://localhost').searchParams.get('after') ?? '';
}

async function openStream(
  feeds: Feeds,
  id: string,
  options: { readonly after: string; readonly signal: AbortSignal },
): Promise<OpenedStream | Refusal> {
  try {
    return await feeds.open(id, options);
  } catch (error) {
    if (error instanceof NoRunError) return { status: 404, message: error.message };
    if (error instanceof InputError) return { status: 400, message: error.message };
    return { status: 503, message: 'the Temporal server does not answer; try again' };
  }
}
