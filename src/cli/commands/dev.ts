import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { basename, dirname, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LiveOptions } from '../../live/live-options.js';
import {
  type DeploymentOptions,
  type WorkerBuild,
  deploymentProblem,
  deploymentTitle,
  promotionCommand,
} from '../../worker/deployment.js';
import {
  type CliContext,
  type Command,
  EXIT,
  type ExitCode,
  type GlobalOptions,
  UsageError,
} from '../context.js';
import { formatCount } from '../format/format.js';
import {
  type WorkerChild,
  reportPort,
  startWorkerChild,
  takesAnyPort,
  watchCode,
  watchEventLoop,
} from '../hosting/dev-process.js';
import { awaitServer, catchInterrupt, hostWorker } from '../hosting/hosting.js';
import { noteLackedRuns } from '../hosting/lacked-runs.js';
import { metricsPlace } from '../hosting/metrics.js';
import { PORT, type Serving, startServing } from '../hosting/serving.js';
import { noteServer } from '../hosting/server-notes.js';
import { CONFIG_NAMES, configFile } from '../input/load-config.js';
import { withOptions } from '../input/options.js';

const FIRST_RESTART_MS = 1_000;
const MAX_RESTART_MS = 30_000;

interface DevOptions {
  /** The port of the console. */
  readonly port?: number;
  readonly livePort?: number;
  readonly liveHost?: string;
  readonly metrics?: string;
}

/**
 * `dev`: runs a server and a worker until interrupted. The worker restarts when it dies, or when
 * the configuration or a file that it imports changes. Only the configuration found at startup is
 * used; a file that appears later is not loaded.
 */
export const dev: Command<DevOptions> = {
  declare: (entry) => withOptions(entry, 'port', 'livePort', 'liveHost', 'metrics'),
  async run(context, { port, livePort, liveHost, metrics }) {
    await metricsPlace(metrics, context);
    const { findFreePort } = await import('../../server/ensure-server.js');
    // All workers of this command get the same one, also if another program has the usual one.
    let consolePort = port ?? (await findFreePort(PORT));
    const flags = [
      ...(livePort === undefined ? [] : ['--live-port', String(livePort)]),
      ...(liveHost === undefined ? [] : ['--live-host', liveHost]),
      ...(metrics === undefined ? [] : ['--metrics', metrics]),
    ];
    const signal = catchInterrupt();
    const folder = process.cwd();
    const file = configFile({ file: context.options.config, folder, env: context.env });
    const options: GlobalOptions = { ...context.options, config: file ?? false };
    const unwatch = file === null ? noteNewConfig(context, folder) : () => undefined;
    if (file !== null) {
      context.note(
        `The worker restarts when ${basename(file)}, or a file that it imports, changes; runs continue.`,
      );
    }
    let restartMs = FIRST_RESTART_MS;
    while (!signal.aborted) {
      const over = new AbortController();
      const all = ['--port', String(consolePort), ...flags];
      const worker = startWorkerChild(options, all, { anyPort: port === undefined });
      const until = AbortSignal.any([signal, over.signal]);
      const change = nextChange(context, { file, files: worker.files }, until);
      const first = await Promise.race([worker.ended, change]);
      const isChange = first === 'changed';
      if (!isChange) await waitToRestart(context, { code: first, change, restartMs });
      restartMs = isChange ? FIRST_RESTART_MS : Math.min(2 * restartMs, MAX_RESTART_MS);
      over.abort();
      await worker.stop();
      consolePort = worker.otherPort() ?? consolePort;
    }
    unwatch();
    return EXIT.completed;
  },
};

/**
 * Waits before a worker that ended by itself restarts: for a change after a usage error, else for a
 * fixed delay.
 */
async function waitToRestart(
  { note }: CliContext,
  ended: { code: number | null; change: Promise<unknown>; restartMs: number },
): Promise<void> {
  const { code, change, restartMs } = ended;
  if (code === EXIT.usage) {
    note('Waiting for a change …');
    await change;
    return;
  }
  note(`The worker ended (${code === null ? 'killed' : `exit code ${code}`}) and restarts.`);
  await Promise.race([change, sleep(restartMs)]);
}

/**
 * Resolves when a file that the configuration imports has changed, and when the signal aborts.
 * While these files are unknown, for example after a mistake in one of them, any code in or below
 * the folder of the configuration counts.
 */
async function nextChange(
  context: CliContext,
  { file, files }: { readonly file: string | null; readonly files: WorkerChild['files'] },
  signal: AbortSignal,
): Promise<'changed'> {
  const changed = new AbortController();
  const over = AbortSignal.any([signal, changed.signal]);
  const note = (path: string): void => changed.abort(path);
  const unwatch: (() => string | null)[] = [];
  const stop = (): readonly (string | null)[] => unwatch.splice(0).map((end) => end());
  if (file !== null) {
    unwatch.push(watchCode({ folder: dirname(file), deep: true, except: context.home }, note));
    const narrowDown = async (): Promise<void> => {
      const known = await files;
      if (known === null || over.aborted) return;
      const narrow = watchFiles(known, note);
      // A file may have changed after the worker read it.
      const missed = stop().find((path) => path !== null && known.includes(resolve(path)));
      unwatch.push(...narrow);
      if (missed) note(missed);
    };
    void narrowDown();
  }
  try {
    await once(over, 'abort');
  } finally {
    stop();
  }
  if (!signal.aborted) {
    context.note(`${relative(process.cwd(), String(changed.signal.reason))} has changed.`);
  }
  return 'changed';
}

/** Watches files by their folders, because editors replace a file instead of writing to it. */
function watchFiles(
  files: readonly string[],
  changed: (path: string) => void,
): readonly (() => string | null)[] {
  return [...new Set(files.map((path) => dirname(path)))].map((folder) => {
    const names = files.filter((path) => dirname(path) === folder).map((path) => basename(path));
    return watchCode({ folder, deep: false, counts: (name) => names.includes(name) }, changed);
  });
}

/** Notes that a configuration that appears later is not loaded: a model may have written it. */
function noteNewConfig({ note, options }: CliContext, folder: string): () => void {
  if (options.config === false) return () => undefined;
  return watchCode({ folder, deep: false, counts: isConfig }, (path) => {
    if (!existsSync(path)) return;
    note(
      `${basename(path)} has appeared and is not loaded: dev started without a configuration. ` +
        'If you wrote it, restart dev.',
    );
  });
}

function isConfig(name: string): boolean {
  return CONFIG_NAMES.includes(name);
}

interface WorkerCommandOptions {
  readonly maxCached?: number;
  readonly deployment?: string;
  readonly buildId?: string;
  readonly promote: boolean;
  /** The port of the console; without it, the worker serves none. */
  readonly port?: number;
  /** False for `--no-live`. */
  readonly live: boolean;
  readonly livePort?: number;
  readonly liveHost?: string;
  readonly metrics?: string;
}

/** `worker`: runs a worker until interrupted. */
export const worker: Command<WorkerCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry,
      'maxCached',
      'deployment',
      'buildId',
      'noPromote',
      'port',
      'livePort',
      'liveHost',
      'noLive',
      'metrics',
    ),
  run: runWorker,
};

async function runWorker(context: CliContext, options: WorkerCommandOptions): Promise<ExitCode> {
  const { maxCached } = options;
  const deployment = deploymentOptions(options);
  if (maxCached !== undefined && !(Number.isInteger(maxCached) && maxCached >= 0)) {
    throw new UsageError(`--max-cached: expected a whole number from 0, got ${maxCached}`);
  }
  const metrics = await metricsPlace(options.metrics, context);
  const signal = catchInterrupt();
  const server = await awaitServer(context, signal);
  if (server === null) return EXIT.completed;
  noteServer(context, server);
  const running = await hostWorker(context, {
    taskQueue: await context.taskQueue(),
    showLog: true,
    live: liveOptions(options),
    metrics,
    ...(maxCached !== undefined && { maxCachedWorkflows: maxCached }),
    ...(deployment && { deployment }),
  });
  const { identity, taskQueue, deployed, live } = running;
  const { address, namespace, uiUrl } = server;
  const agents = (await context.config()).agents.map(({ name }) => name);
  const place = `task queue "${taskQueue}" of ${address}, namespace "${namespace}"`;
  const ui = uiUrl === null ? '' : `; Temporal UI: ${uiUrl}`;
  context.note(
    `Worker ${identity} on ${place}, with ${formatCount(agents.length, 'agent')}: ${agents.join(', ')}${ui}`,
  );
  if (live !== null) context.note(`Live stream: GET ${live.url}/runs/ID/events`);
  if (deployed !== null) context.note(buildLine(deployed));
  // A worker of a deployment serves only the runs that are routed to its build.
  if (deployed === null) await noteLackedRuns(context, taskQueue);
  const serving = await serveConsole(context, options);
  if (context.options.json) {
    const build = deployed && {
      deployment: { name: deployed.deploymentName, buildId: deployed.buildId },
    };
    const line = { identity, taskQueue, address, namespace };
    const urls = { live: live?.url ?? null, metrics: metrics?.url ?? null };
    context.out(JSON.stringify({ ...line, agents, ...urls, ...build }));
  }
  const unwatch = watchEventLoop(context.note);
  try {
    if (!signal.aborted) {
      await Promise.race([running.stopped, once(signal, 'abort')]);
    }
    context.note('The worker stops; calls that it has not finished are left to another worker.');
    await running.shutdown();
    return EXIT.completed;
  } finally {
    unwatch();
    await serving?.close();
  }
}

/** Serves the console if a port is given. A port that is taken is noted, and the worker runs without. */
async function serveConsole(
  context: CliContext,
  { port }: WorkerCommandOptions,
): Promise<Serving | null> {
  if (port === undefined) return null;
  // Another `dev` that was started at the same time may have taken the port.
  const ports = takesAnyPort() ? [port, 0] : [port];
  for (const [index, one] of ports.entries()) {
    try {
      const serving = await serveAt(context, one);
      if (one !== port) reportPort(Number(new URL(serving.url).port));
      return serving;
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      if (index === ports.length - 1) context.note(`No console: ${error.message}`);
    }
  }
  return null;
}

async function serveAt(context: CliContext, port: number): Promise<Serving> {
  const serving = await startServing(context, { host: '127.0.0.1', port });
  context.note(`Console: ${serving.url}`);
  return serving;
}

function liveOptions({
  live,
  livePort: port,
  liveHost: host,
}: WorkerCommandOptions): LiveOptions | false {
  if (live) return { ...(port !== undefined && { port }), ...(host !== undefined && { host }) };
  if (port === undefined && host === undefined) return false;
  throw new UsageError('--no-live: expected no --live-port and no --live-host; omit one of them');
}

function deploymentOptions({
  deployment: name,
  buildId,
  promote,
}: WorkerCommandOptions): DeploymentOptions | null {
  if (name === undefined) {
    if (buildId === undefined && promote) return null;
    const flag = promote ? '--build-id' : '--no-promote';
    throw new UsageError(`${flag}: expected --deployment NAME, got none; name the deployment`);
  }
  const options = { name, promote, ...(buildId !== undefined && { buildId }) };
  const problem = deploymentProblem(options);
  if (problem !== null) throw new UsageError(problem);
  return options;
}

function buildLine(deployed: WorkerBuild): string {
  if (deployed.isCurrent) return `${deploymentTitle(deployed)}: current; new runs start on it`;
  return `${deploymentTitle(deployed)}: not current; promote it to start new runs on it: ${promotionCommand(deployed)}`;
}
