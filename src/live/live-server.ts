import { hostname } from 'node:os';
import { Client, Connection } from '@temporalio/client';
import { CHANNEL_OPTIONS, type ConnectionTarget } from '../temporal/connection.js';
import { eventsRoute } from './events-route.js';
import { createRunStreams, type RunStreams } from './run-streams.js';
import type { LiveHub } from './hub.js';
import type { ListenSettings } from './live-options.js';
import { startHttpServer, type Route } from './http-server.js';
import { liveWorkers } from './live-workers.js';
import type { LiveSource } from './run-stream.js';
import { announce } from './worker-files.js';
import { visibleJson } from '../core/text/hidden.js';
import { liveResponse } from './live-response.js';

/** What a worker shows of the replies that come in on it. */
export interface LiveServer {
  /** By which others reach it. */
  readonly url: string;
  close(): Promise<void>;
}

/** Serves, and makes itself known in PERDURE_HOME. It reads no run before somebody asks for one. */
export async function startLiveServer(
  place: ListenSettings,
  {
    hub,
    target,
    taskQueue,
    home,
    hosts = [],
  }: {
    readonly hub: LiveHub;
    readonly target: ConnectionTarget;
    readonly taskQueue: string;
    readonly home: string;
    /** Machines, beside this one, whose workers may be read. */
    readonly hosts?: readonly string[];
  },
): Promise<LiveServer> {
  let reading: Promise<{ feeds: RunStreams; connection: Connection }> | undefined;
  const open = async (): Promise<{ feeds: RunStreams; connection: Connection }> => {
    const connection = Connection.lazy({ ...target.options, ...CHANNEL_OPTIONS });
    const client = new Client({ connection, namespace: target.namespace });
    const sources = [hubSource(hub), liveWorkers(home, { except: server.url, hosts })];
    return { feeds: createRunStreams(client, { sources }), connection };
  };
  const server = await startHttpServer(place, {
    events: eventsRoute(async () => (await (reading ??= open())).feeds),
    deltas: deltasRoute(hub),
  });
  const self = { url: server.url, token: place.token, pid: process.pid, host: hostname() };
  const { namespace } = target;
  const unsay = await announce(home, { ...self, namespace, taskQueue }).catch(
    async (error: unknown) => {
      await server.close();
      throw error;
    },
  );
  return {
    url: server.url,
    async close() {
      await unsay();
      await server.close();
      await (await reading)?.connection.close();
    },
  };
}

export type StartLiveServer = typeof startLiveServer;

/** What comes in on this very worker. */
function hubSource(hub: LiveHub): LiveSource {
  return ({ id }, { frame, signal }) => {
    const watch = hub.watch(id, () => {
      for (const one of watch.take()) frame(one);
    });
    signal.addEventListener('abort', () => watch.close(), { once: true });
    for (const one of watch.take()) frame(one);
  };
}

/** What comes in on this worker, as JSON lines; for other processes, which put it in order. */
export function deltasRoute(hub: LiveHub): Route {
  return async (exchange) => {
    const live = liveResponse(exchange, {
      type: 'application/x-ndjson',
      signOfLife: '\n',
    });
    let wake: (() => void) | undefined;
    const watch = hub.watch(exchange.asked.id, () => wake?.());
    live.gone.addEventListener('abort', () => wake?.(), { once: true });
    try {
      while (!live.gone.aborted) {
        const woken = new Promise<void>((resolve) => (wake = resolve));
        const frames = watch.take();
        if (frames.length === 0) await woken;
        else await live.write(frames.map((frame) => `${visibleJson(frame)}\n`).join(''));
      }
    } catch (error) {
      if (!live.gone.aborted) throw error;
    } finally {
      watch.close();
    }
    return null;
  };
}
