import { setTimeout as pause } from 'node:timers/promises';
import { resolveLiveOptions, type LiveOptions } from '../../live/live-options.js';
import type { RunningWorker, WorkerOptions } from '../../worker/create-worker.js';
import type { CliContext } from '../context.js';
import { UsageError } from '../exit-codes.js';
import { connectionEnv } from './open-server.js';
import type { LogEntry } from '@temporalio/worker';
import { isObject } from '../../core/json.js';
import { visible } from '../../core/text/summaries.js';
import { LiveOptionsError } from '../../core/errors.js';

/** The worker that a command brings along when none works on the queue. */
export interface Hosting {
  /** Resolves when somebody works on the queue: this process from now on, where nobody else answers. */
  ensure(): Promise<void>;
  /** Whether the work rests on this process; false once a worker elsewhere has answered. */
  readonly isHosting: boolean;
  /** Aborts, with the error, when the own worker dies. */
  readonly died: AbortSignal;
  /** Stops the own worker, if there is one; what is in flight is given up soon. Never throws. */
  stop(): Promise<void>;
}

/** Calls in flight may end in this time when the command does; after it they are left to another worker. */
const GRACE_MS = 500;
/** A tool that does not care about its signal must not keep the process. */
const STOP_MS = 3_000;

export function createHosting(context: CliContext, taskQueue: string): Hosting {
  let worker: RunningWorker | null = null;
  let bringing: Promise<void> | null = null;
  let elsewhere = false;
  const death = new AbortController();
  const bring = async (): Promise<void> => {
    if (worker !== null) return;
    elsewhere = await isWorkedElsewhere(context, taskQueue);
    if (elsewhere) return;
    worker = await hostWorker(context, { taskQueue, shutdownGraceMs: GRACE_MS });
    worker.stopped.catch((error: unknown) => death.abort(error));
  };
  return {
    ensure: () => (bringing ??= bring().finally(() => (bringing = null))),
    get isHosting() {
      return !elsewhere;
    },
    died: death.signal,
    async stop() {
      await bringing?.catch(() => undefined);
      if (worker !== null)
        await Promise.race([worker.shutdown().catch(() => undefined), pause(STOP_MS)]);
    },
  };
}

export async function isWorkedElsewhere(context: CliContext, taskQueue: string): Promise<boolean> {
  const { hasLiveWorker } = await import('../../temporal/probe-worker.js');
  return await hasLiveWorker(await context.client(), taskQueue);
}

/**
 * Checks, before anything is started, that a worker of this command could write its large texts,
 * whoever runs the server. Rejects with a `NoServerError`.
 */
export async function checkHome({ home, say }: CliContext): Promise<void> {
  const { assertWritable, prepareHome } = await import('../../server/server-home.js');
  await assertWritable(await prepareHome(home, { say, embedded: false }));
}

export interface HostOptions extends Pick<
  WorkerOptions,
  'shutdownGraceMs' | 'maxCachedWorkflows' | 'deployment' | 'live'
> {
  readonly taskQueue: string;
  /** Whether the worker's log is shown; else only what it cannot help saying. */
  readonly showLog?: boolean;
}

/** A worker in this process, on the server of the context; others may read along unless told otherwise. */
export async function hostWorker(
  context: CliContext,
  { showLog = false, live = {}, ...options }: HostOptions,
): Promise<RunningWorker> {
  if (live !== false) checkLive(live, context.env);
  await checkHome(context);
  const [{ createWorker }, { installRuntime }] = await Promise.all([
    import('../../worker/create-worker.js'),
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

/** Throws a `UsageError` that speaks of the flags. */
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

/** What the SDK adds to each entry; the rest is what a tool gave with its message. */
const OWN_FIELDS = new Set(
  (
    'sdkComponent taskQueue namespace taskToken activityId activityType workflowId workflowRunId ' +
    'workflowType attempt isLocal durationMs error report decision'
  ).split(' '),
);

/** Warnings, and what tools say by their `log`; not how the SDK is doing. */
export function isForPeople({ level, meta }: LogEntry): boolean {
  if (level === 'WARN' || level === 'ERROR') return true;
  return level === 'INFO' && meta?.['sdkComponent'] === 'activity';
}

/** An entry as one line: `14:39:31 WARN model call failed · run x · callModel, attempt 2: too many requests`. */
export function logLine({ level, message, meta = {}, timestampNanos }: LogEntry): string {
  const time = new Date(Number(timestampNanos / 1_000_000n)).toISOString().slice(11, 19);
  const { workflowId, activityType, attempt } = meta;
  const parts = [
    message,
    ...(typeof workflowId === 'string' ? [`run ${workflowId}`] : []),
    ...(typeof activityType === 'string' ? [`${activityType}, attempt ${String(attempt)}`] : []),
  ].map((part) => visible(part));
  const more = detailOf(meta);
  return `${time} ${level} ${parts.join(' · ')}${more === '' ? '' : `: ${visible(more)}`}`;
}

/** Of an error its message, of a failed model call what its report says, else what a tool adds. */
function detailOf(meta: Record<string, unknown>): string {
  const { error, report } = meta;
  if (error instanceof Error) return error.message;
  if (isObject(report) && typeof report['message'] === 'string') return report['message'];
  const fields = Object.entries(meta).filter(([name]) => !OWN_FIELDS.has(name));
  return fields.length === 0 ? '' : JSON.stringify(Object.fromEntries(fields));
}
