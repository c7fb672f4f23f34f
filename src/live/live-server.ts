import { hostname } from 'node:os';
import { Client, Connection } from '@temporalio/client';
import { visibleJson } from '../core/text/hidden.js';
import { CHANNEL_OPTIONS, type ConnectionTarget } from '../temporal/connection.js';
import { eventsRoute } from './events-route.js';
import { startHttpServer, type Route } from './http-server.js';
import type { LiveHub } from './hub.js';
import type { ListenSettings } from './live-options.js';
import { liveResponse } from './live-response.js';
import { liveWorkers } from './live-workers.js';
import { hubSource } from './process-hub.js';
import { createRunStreams, type RunStreams } from './run-streams.js';
import { announce } from './worker-files.js';

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
    hosts = [],
  }: {
    readonly hub: LiveHub;
    readonly target: ConnectionTarget;
    readonly taskQueue: string;
    readonly home: string;
    /** The machines, besides this one, whose workers may be read. */
    readonly hosts?: readonly string[];
  },
): Promise<LiveServer> {
  let opened: Promise<{ streams: RunStreams; connection: Connection }> | undefined;
  const open = async (): Promise<{ streams: RunStreams; connection: Connection }> => {
    const connection = Connection.lazy({ ...target.options, ...CHANNEL_OPTIONS });
    const client = new Client({ connection, namespace: target.namespace });
    const sources = [hubSource(hub), liveWorkers(home, { except: server.url, hosts })];
    return { streams: createRunStreams(client, { sources }), connection };
  };
  const server = await startHttpServer(settings, {
    events: eventsRoute(async () => (await (opened ??= open())).streams),
    deltas: deltasRoute(hub),
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

/** Serves the deltas of this worker as JSON lines, one batch each, to processes that merge them. */
export function deltasRoute(hub: LiveHub): Route {
  return async (exchange) => {
    const live = liveResponse(exchange, {
      type: 'application/x-ndjson',
      keepAlive: '\n',
    });
    let wake: (() => void) | undefined;
    const watch = hub.watch(exchange.requested.id, () => wake?.());
    live.gone.addEventListener('abort', () => wake?.(), { once: true });
    try {
      while (!live.gone.aborted) {
        const woken = new Promise<void>((resolve) => (wake = resolve));
        const batches = watch.take();
        if (batches.length === 0) await woken;
        else await live.write(batches.map((batch) => `${visibleJson(batch)}\n`).join(''));
      }
    } catch (error) {
      if (!live.gone.aborted) throw error;
    } finally {
      watch.close();
    }
    return null;
  };
}
