import { type Client, ServiceError, isGrpcServiceError } from '@temporalio/client';
import { NoServerError, NotDeliveredError } from '../../core/errors.js';
import type { RunPhase, RunStatusName } from '../../core/state/status.js';
import { formatBytes, visible } from '../../core/state/summaries.js';
import type { ServerHandle } from '../../server/server-settings.js';
import { MIN_FREE_BYTES, freeSpace } from '../../storage/files.js';
import {
  type Build,
  type Poller,
  isSame,
  listPollers,
  livePollers,
} from '../../temporal/pollers.js';
import { deploymentTitle } from '../../worker/deployment.js';
import { type CliContext, CommandError } from '../context.js';
import { formatAgo, formatSpan } from '../format/format.js';
import { nextCommandFor, runnableText } from '../reports/next-command.js';

/** Servers of which a command has said that it started them. */
const noted = new WeakSet<ServerHandle>();

/** Notes once that this command started a server, which outlives it, and how to stop it. */
export function noteServer({ note }: Pick<CliContext, 'note'>, server: ServerHandle): void {
  if (server.how !== 'started' || noted.has(server)) return;
  noted.add(server);
  const stop = server.pid === null ? '' : `; stop it with: kill ${server.pid}`;
  // The home may be misspelled.
  const isNew = server.isNew === true ? ', a new home without runs' : '';
  note(
    `Started a Temporal server for ${server.home}${isNew}. It stays up for the next command${stop}`,
  );
}

/** Whether a worker seems to serve a task queue. */
export interface WorkerPresence {
  readonly taskQueue: string;
  readonly isUp: boolean;
  /** The build without a worker to which the run is pinned. */
  readonly missing?: Build;
  /** `last poll 5 s ago by 123@host`, or how long no worker has polled. */
  readonly text: string;
}

/**
 * Reads the pollers of a task queue. It does not probe them: a worker that was just lost still
 * counts. `pinnedTo`: only workers of this build can continue the run.
 */
export async function readWorkerPresence(
  client: Client,
  taskQueue: string,
  pinnedTo: Build | null = null,
): Promise<WorkerPresence> {
  const pollers = await listPollers(client, { namespace: client.options.namespace, taskQueue });
  const now = Date.now();
  const live = livePollers(pollers, now);
  if (pinnedTo !== null && !live.some(({ build }) => isSame(build, pinnedTo))) {
    const title = visible(deploymentTitle(pinnedTo));
    const text = `the run is pinned to ${title}, which has no running worker; start one of that build again, or move the run as \`perdure doctor\` says`;
    return { taskQueue, isUp: false, missing: pinnedTo, text };
  }
  const able = pinnedTo === null ? live : live.filter(({ build }) => isSame(build, pinnedTo));
  const [newest, ...others] = able;
  if (newest === undefined) return { taskQueue, isUp: false, text: absenceText(pollers, now) };
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  const text = `last poll ${formatAgo(newest.lastPollAt, now)} by ${visible(newest.identity)}${more}`;
  return { taskQueue, isUp: true, text };
}

/**
 * Whether a run with this status makes no progress without a worker. A run that waits for a person
 * or is paused makes none anyway, and the command that continues it says what it needs.
 */
export function needsWorker({ status }: { readonly status: RunStatusName | RunPhase }): boolean {
  return status === 'working' || status === 'waiting_time' || status === 'blocked';
}

/** Notes that no worker is running, and how to start one: a sentence without a period. */
export function noteMissingWorker(
  { note, ...place }: Pick<CliContext, 'note' | 'options' | 'env'>,
  { isUp, missing, taskQueue, text }: WorkerPresence,
  hint: string,
): void {
  if (isUp) return;
  // The command would start a worker of this build, which cannot continue the run.
  if (missing !== undefined) {
    return note(`No worker can continue the run: ${runnableText(place, text)}.`);
  }
  note(`No worker is running on task queue "${visible(taskQueue)}": ${text}. ${hint}`);
}

/** Notes that the worker of this process was the only one on a task queue, and how to start another. */
export async function noteLastWorker(
  context: CliContext,
  run: { readonly taskQueue: string },
): Promise<void> {
  const start = await nextCommandFor(context, run, ['worker']);
  const queue = visible(run.taskQueue);
  context.note(
    `The worker of this process was the only one on task queue "${queue}", and the run goes on when another runs. Start one with: ${start}`,
  );
}

/** Returns the function that notes once why no worker runs, or throws that if a worker is needed. */
export function lackNoter(
  { note }: Pick<CliContext, 'note'>,
  taskQueue: string,
  isNeeded: boolean,
): (lack: string) => void {
  let isNoted = false;
  return (lack) => {
    const text = `o worker is running on task queue "${visible(taskQueue)}". ${lack}`;
    if (isNeeded) throw new CommandError('no_worker', `n${text}; then run this command again.`);
    if (!isNoted) note(`N${text}.`);
    isNoted = true;
  };
}

function absenceText([last]: readonly Poller[], now: number): string {
  if (last === undefined) return 'none has polled in the last minutes';
  const { identity, lastPollAt, gone } = last;
  if (gone)
    return `${visible(identity)} has ended; its last poll was ${formatAgo(lastPollAt, now)}`;
  return `none has polled for ${formatSpan(now - lastPollAt)} (the last was ${visible(identity)})`;
}

/** A server that cannot write answers late or never, so the reason is shown after this time. */
const ANSWER_WITHIN_MS = 1_000;

/**
 * Runs `work`, which queries the server. If the disk of the embedded server is full, notes that
 * first, and rejects with a `NoServerError` if the server does not answer within a second.
 */
export async function withDiskCheck<T>(context: CliContext, work: () => Promise<T>): Promise<T> {
  const full = await fullDiskMessage(await context.server());
  if (full === null) return await work();
  context.note(full);
  const client = await context.client();
  try {
    return await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, work);
  } catch (cause) {
    if (!isServerError(cause)) throw cause;
    throw new NoServerError(`The server does not answer. ${full}`, { cause });
  }
}

function isServerError(error: unknown): boolean {
  return (
    isGrpcServiceError(error) ||
    error instanceof ServiceError ||
    NoServerError.isInstance(error) ||
    NotDeliveredError.isInstance(error)
  );
}

/**
 * Returns why the embedded server may not answer; null for any other server, or if space is left.
 */
export async function fullDiskMessage({ pid, home }: ServerHandle): Promise<string | null> {
  const free = pid === null ? null : await freeSpace(home);
  if (free === null || free >= MIN_FREE_BYTES) return null;
  return `The disk of ${home} is full (${formatBytes(free)} left); free space, and runs resume by themselves.`;
}

/** Returns the error for a server that no longer answers while a run is followed. */
export async function serverGone(
  context: CliContext,
  run: { readonly id: string; readonly taskQueue: string },
  cause: Error,
): Promise<NoServerError> {
  const { address } = await context.server();
  const next = await nextCommandFor(context, run, ['attach', run.id]);
  const message =
    `The Temporal server at ${address} no longer answers (${cause.message}). ` +
    `It keeps everything that the run has recorded. When the server is back, run: ${next}`;
  return new NoServerError(message, { cause });
}
