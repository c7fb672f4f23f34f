import { setTimeout as sleep } from 'node:timers/promises';
import { resolveLiveOptions, type LiveOptions } from '../../live/live-options.js';
import type { RunningWorker } from '../../worker.js';
import type { WorkerOptions } from '../../worker/options.js';
import type { CliContext } from '../context.js';
import { UsageError } from '../exit-codes.js';
import { connectionEnv } from './open-server.js';
import type { LogEntry } from '@temporalio/worker';
import { isObject } from '../../core/json.js';
import { visible } from '../../core/text/summaries.js';
import { LiveOptionsError } from '../../core/errors.js';

/** The worker that a command hosts if no other worker serves the task queue. */
export interface Hosting {
  /**
   * Resolves when a worker serves the queue: one elsewhere if it answers, else one in this process.
   */
  ensure(): Promise<void>;
  /** Whether this process hosts the worker; false once a worker elsewhere has answered. */
  readonly isHosting: boolean;
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

export function createHosting(
  context: CliContext,
  taskQueue: string,
  options: Pick<HostOptions, 'activities'> = {},
): Hosting {
  let worker: RunningWorker | null = null;
  let starting: Promise<void> | null = null;
  let elsewhere = false;
  const death = new AbortController();
  const startIfNeeded = async (): Promise<void> => {
    if (worker !== null) return;
    elsewhere = await isWorkedElsewhere(context, taskQueue);
    if (elsewhere) return;
    worker = await hostWorker(context, { taskQueue, shutdownGrace: GRACE_MS, ...options });
    worker.stopped.catch((error: unknown) => death.abort(error));
  };
  return {
    ensure: () => (starting ??= startIfNeeded().finally(() => (starting = null))),
    get isHosting() {
      return !elsewhere;
    },
    died: death.signal,
    async stop() {
      await starting?.catch(() => undefined);
      if (worker !== null)
        await Promise.race([worker.shutdown().catch(() => undefined), sleep(STOP_MS)]);
    },
  };
}

export async function isWorkedElsewhere(context: CliContext, taskQueue: string): Promise<boolean> {
  const { hasLiveWorker } = await import('../../temporal/probe-worker.js');
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

export interface HostOptions extends Pick<
  WorkerOptions,
  'shutdownGrace' | 'maxCachedWorkflows' | 'deployment' | 'live' | 'activities'
> {
  readonly taskQueue: string;
  /** Show the whole log of the worker; default: only warnings, errors, and what tools log. */
  readonly showLog?: boolean;
}

/**
 * Creates a worker in this process, on the server of the context. It serves live streams unless
 * `live` is false.
 */
export async function hostWorker(
  context: CliContext,
  { showLog = false, live = {}, ...options }: HostOptions,
): Promise<RunningWorker> {
  if (live !== false) checkLive(live, context.env);
  await checkHome(context);
  const [{ createWorker }, { installRuntime }] = await Promise.all([
    import('../../worker.js'),
    import('../../worker/runtime.js'),
  ]);
  const server = await context.server();
  const isVerbose = Boolean(context.env['PERDURE_DEBUG']);
  installRuntime(isVerbose || showLog ? 'INFO' : 'ERROR', (entry) => {
    if (isVerbose || isForPeople(entry)) context.note(logLine(entry));
  });
  return await createWorker({
    config: await context.config(),
    address: server.address,
    namespace: server.namespace,
    env: connectionEnv(context.env, server),
    live,
    containStrayErrors: true,
    ...options,
  });
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

/** The fields that the SDK adds to each entry; any others come from a tool. */
const SDK_FIELDS = new Set(
  (
    'sdkComponent taskQueue namespace taskToken activityId activityType workflowId workflowRunId ' +
    'workflowType attempt isLocal durationMs error report decision'
  ).split(' '),
);

/** Returns whether a person should see a log entry: warnings, errors, and what tools log. */
export function isForPeople({ level, meta }: LogEntry): boolean {
  if (level === 'WARN' || level === 'ERROR') return true;
  return level === 'INFO' && meta?.['sdkComponent'] === 'activity';
}

/**
 * Formats an entry as one line:
 * `14:39:31 WARN model call failed · run x · callModel, attempt 2: too many requests`.
 */
export function logLine({ level, message, meta = {}, timestampNanos }: LogEntry): string {
  const time = new Date(Number(timestampNanos / 1_000_000n)).toISOString().slice(11, 19);
  const { workflowId, activityType, attempt } = meta;
  const parts = [
    message,
    ...(typeof workflowId === 'string' ? [`run ${workflowId}`] : []),
    ...(typeof activityType === 'string' ? [`${activityType}, attempt ${String(attempt)}`] : []),
  ].map((part) => visible(part));
  const details = logDetails(meta);
  return `${time} ${level} ${parts.join(' · ')}${details === '' ? '' : `: ${visible(details)}`}`;
}

/**
 * Returns the message of an error or of a failed model call's report, else the fields of a tool.
 */
function logDetails(meta: Record<string, unknown>): string {
  const { error, report } = meta;
  if (error instanceof Error) return error.message;
  if (isObject(report) && typeof report['message'] === 'string') return report['message'];
  const fields = Object.entries(meta).filter(([name]) => !SDK_FIELDS.has(name));
  return fields.length === 0 ? '' : JSON.stringify(Object.fromEntries(fields));
}
