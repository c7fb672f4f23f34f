import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { LogEntry } from '@temporalio/worker';
import { LiveOptionsError, NoServerError } from '../../core/errors.js';
import { type LiveOptions, resolveLiveOptions } from '../../live/live-options.js';
import type { ServerHandle, ServerOptions } from '../../server/server-settings.js';
import type { Poller } from '../../temporal/pollers.js';
import type { RunningWorker } from '../../worker/create-worker.js';
import { isForPeople, logLine, newsFilter } from '../../worker/log-lines.js';
import type { WorkerOptions } from '../../worker/options.js';
import { type CliContext, EXIT, type ServerRequest, UsageError } from '../context.js';
import { runnableText } from '../reports/next-command.js';
import { lackNoter } from './server-notes.js';
import { watchElsewhere } from './takeover.js';
import { type MetricsPlace, asMetricsError } from './metrics.js';

/**
 * Returns the server that the options, the environment, or the configuration name. Without one,
 * returns a running server, else the embedded server, which it starts unless `start` is false.
 * Throws a `NoServerError` if there is none.
 */
export async function openServer(
  context: CliContext,
  request: ServerRequest,
): Promise<ServerHandle> {
  const options = await serverOptions(context);
  if (request.start !== false) {
    const { ensureServer } = await import('../../server/ensure-server.js');
    return await ensureServer(options);
  }
  const { findServer } = await import('../../server/dev-server.js');
  const found = await findServer(options);
  if (found !== null) return found;
  throw new NothingRunsError(
    `No Temporal server is running for ${options.home}. Start one with \`perdure dev\`, ` +
      'or name one with --address or TEMPORAL_ADDRESS.',
  );
}

/** No server is named, none is running, and none may be started. */
export class NothingRunsError extends NoServerError {}

async function serverOptions(context: CliContext): Promise<ServerOptions> {
  const { options, env, home, note } = context;
  const { addressProblem } = await import('../../temporal/connection.js');
  const { loadClientConnectConfig } = await import('@temporalio/envconfig');
  const { connectionOptions, namespace: fromEnvironment } = loadClientConnectConfig({
    overrideEnvVars: definedOnly(env),
  });
  const config = await context.config();
  const address = options.address ?? config.address ?? connectionOptions.address;
  const named = options.address ?? config.address;
  const problem = named === undefined ? null : addressProblem(named);
  if (problem !== null) {
    throw new UsageError(
      options.address === undefined ? `configuration: ${problem}` : `--${problem}`,
    );
  }
  const namespace = options.namespace ?? config.namespace ?? fromEnvironment;
  return { home, env, note, ...(address && { address }), ...(namespace && { namespace }) };
}

/** Returns whether the user has chosen the server; otherwise, the embedded server is used. */
export async function isServerNamed(context: CliContext): Promise<boolean> {
  return (await serverOptions(context)).address !== undefined;
}

/** The time between two attempts to reach a server that does not answer. */
const [FIRST_WAIT_MS, MAX_WAIT_MS] = [500, 10_000];

/**
 * Returns the server of the context, for a worker: while nothing answers at the named address, notes
 * that once and tries again, as a running worker does when its server goes away. Returns null if the
 * signal aborts first.
 */
export async function awaitServer(
  context: CliContext,
  signal: AbortSignal,
): Promise<ServerHandle | null> {
  const { SilentServerError } = await import('../../server/dev-server.js');
  let waitMs = FIRST_WAIT_MS;
  while (!signal.aborted) {
    try {
      return await context.server();
    } catch (error) {
      if (!(error instanceof SilentServerError)) throw error;
      if (waitMs === FIRST_WAIT_MS)
        context.note(`${runnableText(context, error.message)} The worker waits for it …`);
    }
    await sleep(waitMs, undefined, { signal }).catch(() => undefined);
    waitMs = Math.min(2 * waitMs, MAX_WAIT_MS);
  }
  return null;
}

/** Connects to the server of the context. */
export async function openConnection(
  context: CliContext,
  request: ServerRequest,
): Promise<{ client: Client; close: () => Promise<void> }> {
  const server = await context.server(request);
  const [
    { Client, Connection },
    { connectionTarget },
    { CHANNEL_OPTIONS },
    { dataConverter },
    { keyringFrom },
    { setIdHashing },
  ] = await Promise.all([
    import('@temporalio/client'),
    import('../../temporal/connection.js'),
    import('../../temporal/grpc.js'),
    import('../../encryption/payload-codec.js'),
    import('../../encryption/keyring.js'),
    import('../../temporal/stored-ids.js'),
  ]);
  const { address, namespace } = server;
  const target = connectionTarget({ address, namespace }, connectionEnv(context.env, server));
  const keyring = keyringFrom((await context.config()).encryption, context.env);
  const connection = await Connection.connect({ ...target.options, ...CHANNEL_OPTIONS });
  const client = new Client({ connection, namespace, ...dataConverter(keyring) });
  setIdHashing(client, keyring?.ids ?? null);
  return { client, close: () => connection.close() };
}

/**
 * Returns the environment for a connection. Removes Temporal's keys and TLS settings unless the
 * server was named: they are not meant for a server that was found here.
 */
export function connectionEnv(env: NodeJS.ProcessEnv, server: ServerHandle): NodeJS.ProcessEnv {
  if (server.how === 'address') return env;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('TEMPORAL_')));
}

function definedOnly(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/** The worker that a command hosts if no other worker serves the task queue. */
export interface Hosting {
  /**
   * Resolves when a worker serves the queue: one elsewhere if it answers, else one in this process.
   */
  ensure(): Promise<void>;
  /** Whether this process hosts the worker; false once it is known that it leaves that to others. */
  readonly isHosting: boolean;
  /** Returns whether no worker but that of this process polls the queue now. */
  isAlone(): Promise<boolean>;
  /** Aborts with the error if our worker dies. */
  readonly died: AbortSignal;
  /**
   * Stops our worker, if there is one, and abandons calls in flight after a short time. Never
   * throws.
   */
  stop(): Promise<void>;
}

/**
 * The time that calls in flight have to finish when the command ends; then another worker takes
 * over.
 */
const GRACE_MS = 500;
/** A tool that ignores its abort signal must not keep the process alive. */
const STOP_MS = 3_000;
interface HostingOptions extends Pick<HostOptions, 'activities' | 'metrics'> {
  /** Why a worker of this process must not serve the queue; null if it may. It is noted once. */
  readonly lack?: string | null;
  /** With `lack`, a queue without a worker is an error: the command does not wait for one. */
  readonly isNeeded?: boolean;
  /**
   * Host a worker also when the one elsewhere has ended, unless this returns why it must not: default: only
   * `ensure` hosts one.
   */
  readonly lackLater?: () => Promise<string | null>;
}

/** Creates the worker that a command hosts if it is needed. */
export function createHosting(
  context: CliContext,
  taskQueue: string,
  { lack = null, isNeeded = false, lackLater, ...options }: HostingOptions = {},
): Hosting {
  const noteOnce = lackNoter(context, taskQueue, isNeeded);
  let worker: RunningWorker | null = null;
  let starting: Promise<void> | null = null;
  let elsewhere = false;
  let endWatch: (() => void) | null = null;
  let isStopped = false;
  const death = new AbortController();
  const startIfNeeded = async (): Promise<void> => {
    if (worker !== null || isStopped) return;
    elsewhere = await isWorkedElsewhere(context, taskQueue);
    if (isStopped) return;
    if (elsewhere) {
      if (lack === null && lackLater !== undefined)
        endWatch ??= watchElsewhere(context, { isPolled, lack: lackLater, start });
      return;
    }
    if (lack !== null) {
      noteOnce(lack);
      elsewhere = true;
      return;
    }
    const hosted = { taskQueue, shutdownGrace: GRACE_MS, ...options };
    worker = await hostWorker(context, { ...hosted, erases: false });
    endWatch?.();
    worker.stopped.catch((error: unknown) => death.abort(error));
  };
  const ensure = (): Promise<void> =>
    (starting ??= startIfNeeded().finally(() => (starting = null)));
  const isPolled = async (): Promise<boolean> =>
    (await queuePollers(context, taskQueue)).length > 0;
  const start = async (): Promise<boolean> => {
    await ensure();
    return worker !== null;
  };
  return {
    ensure,
    get isHosting() {
      return !elsewhere;
    },
    async isAlone() {
      if (elsewhere) return false;
      // Only a hint depends on it, which the command can give without an answer of the server.
      const pollers = await queuePollers(context, taskQueue).catch(() => []);
      const own = worker?.identity;
      return pollers.every(({ identity }) => identity === own);
    },
    died: death.signal,
    async stop() {
      isStopped = true;
      endWatch?.();
      await starting?.catch(() => undefined);
      if (worker !== null)
        await Promise.race([worker.shutdown().catch(() => undefined), sleep(STOP_MS)]);
    },
  };
}

/** Returns the pollers of a task queue that may still be alive. */
async function queuePollers(context: CliContext, taskQueue: string): Promise<readonly Poller[]> {
  const { listPollers, livePollers } = await import('../../temporal/pollers.js');
  const client = await context.client();
  const { namespace } = client.options;
  return livePollers(await listPollers(client, { namespace, taskQueue }), Date.now());
}

export async function isWorkedElsewhere(context: CliContext, taskQueue: string): Promise<boolean> {
  const { hasLiveWorker } = await import('../../temporal/pollers.js');
  return await hasLiveWorker(await context.client(), taskQueue);
}

/**
 * Checks, before anything is started, that a worker of this command can write large texts to
 * PERDURE_HOME, whichever server is in use. Throws a `NoServerError` otherwise.
 */
export async function checkHome({ home, note }: CliContext): Promise<void> {
  const { assertWritable, prepareHome } = await import('../../server/server-home.js');
  await assertWritable(await prepareHome(home, { note, embedded: false }));
}

interface HostOptions extends Pick<
  WorkerOptions,
  'shutdownGrace' | 'maxCachedWorkflows' | 'deployment' | 'live' | 'activities'
> {
  readonly taskQueue: string;
  /** Show the whole log of the worker; default: only warnings, errors, and what tools log. */
  readonly showLog?: boolean;
  /** Whether it erases ended runs by the retention of its agents; default true. */
  readonly erases?: boolean;
  /** Where it exports metrics; default: nowhere. */
  readonly metrics?: MetricsPlace | null;
}

/**
 * Creates a worker in this process, on the server of the context. It serves live streams unless
 * `live` is false.
 */
export async function hostWorker(
  context: CliContext,
  { showLog = false, erases = true, live = {}, metrics = null, ...options }: HostOptions,
): Promise<RunningWorker> {
  if (live !== false) checkLive(live, context.env);
  await checkHome(context);
  const [{ startWorker }, { installRuntime }] = await Promise.all([
    import('../../worker/create-worker.js'),
    import('../../worker/log.js'),
  ]);
  const server = await context.server();
  try {
    installRuntime(context.env['PERDURE_DEBUG'] || showLog ? 'INFO' : 'ERROR', {
      write: logWriter(context),
      metrics: metrics?.address ?? null,
      // `logWriter` does so for the whole line, with this program and its place.
      runnable: (text) => text,
    });
  } catch (error) {
    throw metrics === null ? error : asMetricsError(error, metrics);
  }
  if (metrics !== null) context.note(`Metrics: GET ${metrics.url}`);
  const settings = {
    config: await context.config(),
    address: server.address,
    namespace: server.namespace,
    env: connectionEnv(context.env, server),
    live,
    containStrayErrors: true,
    ...options,
  };
  return await startWorker(settings, { erases });
}

/**
 * Returns a function that notes each log entry that people should see, once, with commands that can be
 * pasted. With PERDURE_DEBUG, it notes all entries.
 */
export function logWriter(
  context: Pick<CliContext, 'env' | 'options' | 'note'>,
): (entry: LogEntry) => void {
  const isVerbose = Boolean(context.env['PERDURE_DEBUG']);
  const isNews = newsFilter();
  return (entry) => {
    if (!isVerbose && !(isForPeople(entry) && isNews(entry))) return;
    context.note(runnableText(context, logLine(entry)));
  };
}

/** Throws a `UsageError` that names the flags if a live option is invalid. */
function checkLive(live: LiveOptions, env: CliContext['env']): void {
  try {
    resolveLiveOptions(live, env);
  } catch (error) {
    if (!(error instanceof LiveOptionsError)) throw error;
    throw new UsageError(error.message.replace(/^live\.(host|port)/, '--live-$1'), {
      cause: error,
    });
  }
}

/**
 * Returns a signal that aborts on the first interrupt (Ctrl-C, SIGTERM); a second one ends the
 * process at once. `dev` starts its worker with an IPC channel. When that channel closes, `dev` has
 * ended, and the worker also ends.
 */
export function catchInterrupt(): AbortSignal {
  const caught = new AbortController();
  const onInterrupt = (): void => {
    // A second interrupt means that the user does not want to wait.
    if (caught.signal.aborted) process.exit(EXIT.interrupted);
    caught.abort();
  };
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onInterrupt);
  process.on('disconnect', onInterrupt);
  // The channel may have closed before the listener was added.
  const hadChannel = 'connected' in process;
  if (hadChannel && !process.connected) caught.abort();
  return caught.signal;
}
