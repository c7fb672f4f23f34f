import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, type ClientOptions, Connection } from '@temporalio/client';
import { InputError, NoRunError } from '../core/errors.js';
import { show, visibleJson } from '../core/text/text.js';
import { deletedRunMessage } from '../history/read-run.js';
import type { Archive } from '../storage/blob-store.js';
import type { ConnectionTarget } from '../temporal/connection.js';
import { CHANNEL_OPTIONS, GRPC, grpcCode } from '../temporal/grpc.js';
import { type IdHashing, storedForms } from '../temporal/stored-ids.js';
import type { LiveHub } from './hub.js';
import { type Exchange, type Route, startHttpServer } from './http-server.js';
import type { ListenSettings, Refusal } from './live-options.js';
import { hubSource } from './live-source.js';
import { announce, liveWorkers } from './live-workers.js';
import { type LinesOf, sealedLine } from './sealed-lines.js';
import { type OpenedStream, type RunStreams, createRunStreams } from './run-streams.js';
import { sseEvent, sseResponse, streamResponse } from './sse.js';
import type { StreamEvent } from './stream.js';

/** Milliseconds after which a browser reconnects if its connection breaks. */
const RETRY_MS = 1_000;
const PACKET_UNITS = 64 * 1024;
const UNAVAILABLE: Refusal = {
  status: 503,
  message: 'the Temporal server does not answer; try again',
  retryAfter: 5,
};

/**
 * Serves a run's stream as server-sent events: `data` is one event as JSON; `id` is its position,
 * which the reader sends back as `Last-Event-ID` or `?after=`. `deleted` returns what to say about a run
 * that only the archive has; null for any other.
 */
function eventsRoute(
  streams: () => Promise<RunStreams>,
  deleted: (id: string) => Promise<string | null>,
  hashing: IdHashing | null,
): Route {
  /** Most readers get the same event objects, so each is serialized once. */
  const serialized = new WeakMap<StreamEvent, string>();
  const serialize = (event: StreamEvent): string => {
    const known = serialized.get(event);
    if (known !== undefined) return known;
    const { position, ...data } = event;
    const text = sseEvent({ id: position, data: visibleJson(data) });
    serialized.set(event, text);
    return text;
  };
  return async (exchange) => {
    const { id, after, over, limits } = exchange;
    const ids = storedForms(hashing, 'run', id);
    const opened = await openInTime(streams, exchange, ids);
    if ('status' in opened) {
      const message = opened.status === 404 ? await deleted(ids[0] ?? '') : null;
      return message === null ? opened : { status: 410, message };
    }
    over.signal.addEventListener('abort', () => opened.close(), { once: true });
    if (over.signal.aborted || opened.isPast) {
      opened.close();
      // Status 204 stops a browser from reconnecting.
      return new Response(null, { status: 204 });
    }
    const blocks = async function* () {
      yield `retry: ${RETRY_MS}\n\n`;
      // A reader whose connection breaks before the first event comes back here, and not at a later `now`.
      if (after === 'now') yield `id: ${opened.position}\n\n`;
      for await (const batch of opened.batches) yield* packets(batch.map(serialize));
    };
    return sseResponse(blocks(), { over, readMs: limits.stalledMs });
  };
}

/** Joins texts into packets, so at most one packet or one event waits for a slow reader. */
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

/** Opens the stream, or returns a refusal after `openMs`. */
async function openInTime(
  streams: () => Promise<RunStreams>,
  { after, over: { signal }, limits: { openMs } }: Exchange,
  ids: readonly string[],
): Promise<OpenedStream | Refusal> {
  const opening = streams().then((all) => openNamed(all, ids, { after, signal }));
  const late = new AbortController();
  const timeout = pause(openMs, null, { signal: late.signal }).catch(() => null);
  const opened = await Promise.race([opening, timeout]);
  late.abort();
  if (opened !== null) return opened;
  // It may still open after the refusal was sent.
  opening.then((stream) => 'close' in stream && stream.close()).catch(() => undefined);
  return UNAVAILABLE;
}

/** Opens the stream of the run that a caller names: by the hash of the id, else by the id, as the client does. */
async function openNamed(
  streams: RunStreams,
  ids: readonly string[],
  options: Parameters<typeof openStream>[2],
): Promise<OpenedStream | Refusal> {
  const [id = '', ...others] = ids;
  const opened = await openStream(streams, id, options);
  const isUnknown = 'status' in opened && opened.status === 404;
  return isUnknown && others.length > 0 ? await openNamed(streams, others, options) : opened;
}

async function openStream(
  streams: RunStreams,
  id: string,
  options: { readonly after: string; readonly signal: AbortSignal },
): Promise<OpenedStream | Refusal> {
  try {
    return await streams.open(id, options);
  } catch (error) {
    if (error instanceof NoRunError) return { status: 404, message: error.message };
    if (error instanceof InputError) return { status: 400, message: error.message };
    if (grpcCode(error) === GRPC.invalidArgument) {
      return { status: 400, message: `id: expected the id of a run, got ${show(id)}` };
    }
    return UNAVAILABLE;
  }
}

/** Serves the streams of runs to other processes, from one worker. */
export interface LiveServer {
  /** The address for other processes. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Starts serving and announces the worker in PERDURE_HOME. Connects to Temporal on the first
 * request.
 */
export async function startLiveServer(
  settings: ListenSettings,
  {
    hub,
    target,
    taskQueue,
    home,
    archive,
    hosts = [],
    converter = {},
    hashing = null,
  }: {
    readonly hub: LiveHub;
    readonly target: ConnectionTarget;
    readonly taskQueue: string;
    readonly home: string;
    /** Where a run may be that Temporal has deleted. */
    readonly archive: Archive;
    /** The machines, besides this one, whose workers may be read. */
    readonly hosts?: readonly string[];
    /** With a codec, if payloads are encrypted. */
    readonly converter?: Partial<Pick<ClientOptions, 'dataConverter'>>;
    /** How ids are hashed; null if they are in clear. */
    readonly hashing?: IdHashing | null;
  },
): Promise<LiveServer> {
  const codecs = converter.dataConverter?.payloadCodecs ?? [];
  let opened: Promise<{ streams: RunStreams; connection: Connection }> | undefined;
  const open = async (): Promise<{ streams: RunStreams; connection: Connection }> => {
    const connection = Connection.lazy({ ...target.options, ...CHANNEL_OPTIONS });
    const client = new Client({ connection, namespace: target.namespace, ...converter });
    const others = liveWorkers(home, { except: server.url, hosts, codecs });
    const sources = [hubSource(hub), others];
    return { streams: createRunStreams(client, { sources }), connection };
  };
  const server = await startHttpServer(settings, {
    events: eventsRoute(
      async () => (await (opened ??= open())).streams,
      async (id) => await deletedRunMessage(archive, { namespace: target.namespace, id }),
      hashing,
    ),
    deltas: deltasRoute(hub, { codecs, namespace: target.namespace }),
  });
  const self = { url: server.url, token: settings.token, pid: process.pid, host: hostname() };
  const { namespace } = target;
  const withdraw = await announce(home, { ...self, namespace, taskQueue }).catch(
    async (error: unknown) => {
      await server.close();
      throw error;
    },
  );
  return {
    url: server.url,
    async close() {
      await withdraw();
      await server.close();
      await (await opened)?.connection.close();
    },
  };
}

export type StartLiveServer = typeof startLiveServer;

/**
 * Serves the deltas of this worker as JSON lines, one batch each, to processes that merge them. With
 * codecs, for example for encryption, each line is encoded.
 */
export function deltasRoute(
  hub: LiveHub,
  how: Pick<LinesOf, 'codecs' | 'namespace'> = { codecs: [], namespace: '' },
): Route {
  return async ({ id, over, limits }) => {
    const blocks = async function* () {
      let wake: (() => void) | undefined;
      const watch = hub.watch(id, () => wake?.());
      over.signal.addEventListener('abort', () => wake?.(), { once: true });
      try {
        while (!over.signal.aborted) {
          const woken = new Promise<void>((resolve) => (wake = resolve));
          const batches = watch.take();
          if (batches.length === 0) await woken;
          else {
            const lines = batches.map((batch) => sealedLine(visibleJson(batch), { ...how, id }));
            yield `${(await Promise.all(lines)).join('\n')}\n`;
          }
        }
      } finally {
        watch.close();
      }
    };
    return streamResponse(blocks(), {
      type: 'application/x-ndjson',
      keepAlive: '\n',
      over,
      readMs: limits.stalledMs,
    });
  };
}
