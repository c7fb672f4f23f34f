import { setTimeout as pause } from 'node:timers/promises';
import { isGrpcServiceError } from '@temporalio/client';
import { InputError, NoRunError } from '../core/errors.js';
import { visibleJson } from '../core/text/hidden.js';
import { show } from '../core/text/format-value.js';
import type { Refusal } from './admission.js';
import type { RunStreams, OpenedStream } from './run-streams.js';
import { liveResponse } from './live-response.js';
import type { Exchange, Route } from './http-server.js';
import type { StreamEvent } from './stream-events.js';

/** A reader whose line broke comes back after so many milliseconds. */
const RETRY_MS = 1_000;
const PACKET_UNITS = 64 * 1024;
/** Of gRPC: the server says that what it was asked about cannot be. */
const INVALID_ARGUMENT = 3;
const UNAVAILABLE: Refusal = {
  status: 503,
  message: 'the Temporal server does not answer; try again',
  retryAfter: 5,
};

/**
 * A run's stream as server-sent events: `data` is one event as JSON, `id` its position, which
 * `Last-Event-ID` or `?after=` brings back.
 */
export function eventsRoute(feeds: () => Promise<RunStreams>): Route {
  /** Most readers get the very same events, so each is written down once. */
  const written = new WeakMap<StreamEvent, string>();
  const textOf = (event: StreamEvent): string => {
    const known = written.get(event);
    if (known !== undefined) return known;
    const { position, ...data } = event;
    const text = `id: ${position}\ndata: ${visibleJson(data)}\n\n`;
    written.set(event, text);
    return text;
  };
  return async (exchange) => {
    const { response } = exchange;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const opened = await openInTime(feeds, exchange, gone.signal);
    if ('status' in opened) return opened;
    if (gone.signal.aborted) {
      opened.close();
      return null;
    }
    if (opened.isPast) {
      opened.close();
      // Tells a browser not to come back.
      response.writeHead(204).end();
      return null;
    }
    const live = liveResponse(exchange, {
      type: 'text/event-stream',
      signOfLife: ':\n\n',
    });
    try {
      await live.write(`retry: ${RETRY_MS}\n\n`);
      for await (const batch of opened.batches) {
        for (const text of packets(batch.map((event) => textOf(event)))) await live.write(text);
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

/** What may be sent in one go: of a slow reader no more waits in memory than that, or one event. */
function* packets(texts: readonly string[]): Generator<string> {
  let packet = '';
  for (const text of texts) {
    if (packet !== '' && packet.length + text.length > PACKET_UNITS) {
      yield packet;
      packet = '';
    }
    packet += text;
  }
  if (packet !== '') yield packet;
}

/** Finds the run for as long as a reader may be kept waiting. */
async function openInTime(
  feeds: () => Promise<RunStreams>,
  { asked: { id, after }, limits: { openMs } }: Exchange,
  signal: AbortSignal,
): Promise<OpenedStream | Refusal> {
  const opening = feeds().then((all) => openStream(all, id, { after, signal }));
  const late = new AbortController();
  const timeout = pause(openMs, null, { signal: late.signal }).catch(() => null);
  const opened = await Promise.race([opening, timeout]);
  late.abort();
  if (opened !== null) return opened;
  // It may be found yet, when nobody waits for it any more.
  opening.then((one) => 'close' in one && one.close()).catch(() => undefined);
  return UNAVAILABLE;
}

async function openStream(
  feeds: RunStreams,
  id: string,
  options: { readonly after: string; readonly signal: AbortSignal },
): Promise<OpenedStream | Refusal> {
  try {
    return await feeds.open(id, options);
  } catch (error) {
    if (error instanceof NoRunError) return { status: 404, message: error.message };
    if (error instanceof InputError) return { status: 400, message: error.message };
    const code: number | null = isGrpcServiceError(error) ? error.code : null;
    if (code === INVALID_ARGUMENT) {
      return { status: 400, message: `id: expected the id of a run, got ${show(id)}` };
    }
    return UNAVAILABLE;
  }
}
