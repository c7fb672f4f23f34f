import type { Client } from '@temporalio/client';
import { toRunStatus } from '../client/status.js';
import { NoRunError } from '../core/errors.js';
import { statusText } from '../core/status.js';
import { visible } from '../core/text/summaries.js';
import { endOfRun } from '../history/end-of-run.js';
import { readRun, type RunReading } from '../history/read-run.js';
import { openStores } from '../storage/file-stores.js';
import { hasLiveWorker } from '../temporal/probe-worker.js';
import type { CliContext } from './context.js';
import { CommandError, UsageError } from './exit-codes.js';
import { formatAgo, formatDateTime } from './format/format-time.js';
import { noteServer } from './hosting/note-server.js';
import { nextCommand, nextCommandFor } from './reports/next-command.js';

/** The run that a command works on, with the client that read it. */
export interface OpenedRun {
  readonly client: Client;
  readonly run: RunReading;
}

/**
 * Reads a run. With `archive`, also reads a run that the server has deleted, and notes which part
 * of it is unknown. For an unknown id, throws an error that names the command to list runs.
 */
export async function openRun(
  context: CliContext,
  id: string,
  { archive = false }: { readonly archive?: boolean } = {},
): Promise<OpenedRun> {
  if (id.trim() === '')
    throw new UsageError('id: expected the id of a run, got ""; see perdure list');
  noteServer(context, await context.server());
  const client = await context.client();
  try {
    const stores = archive ? openStores(context.home, context.env) : {};
    const run = await readRun(client, id, stores);
    if (run.description === null) noteArchived(context, run);
    return { client, run };
  } catch (error) {
    if (!NoRunError.isInstance(error)) throw error;
    throw new Error(`${error.message}; list runs with: ${nextCommand(context, 'list')}`, {
      cause: error,
    });
  }
}

/** Notes that the server has deleted a run, and how much of it the archive has. */
function noteArchived(context: CliContext, run: RunReading): void {
  const { archived } = toRunStatus(run, Date.now());
  const until = formatDateTime(archived?.at ?? 0);
  const rest =
    archived?.ended === true ? '' : '; what happened later, and how it ended, is unknown';
  context.note(
    `The server has deleted run ${visible(run.id)}. The archive has it until ${until}${rest}.`,
  );
}

/** Creates the error for a workflow id that is in use. */
export async function idTakenError(
  context: CliContext,
  run: { readonly id: string; readonly taskQueue: string },
  cause: unknown,
): Promise<UsageError> {
  const follow = await nextCommandFor(context, run, ['attach', run.id]);
  return new UsageError(
    `--id: expected an unused id, got ${visible(run.id)}; choose another one, or follow that run with: ${follow}`,
    { cause },
  );
}

/** Reads a run that has not ended. Otherwise throws an error that reports how and when it ended. */
export async function requireOpenRun(context: CliContext, id: string): Promise<OpenedRun> {
  const opened = await openRun(context, id);
  const { run } = opened;
  const end = endOfRun(run);
  if (end === null) return opened;
  const how = statusText({ status: end.outcome.status, reason: end.reason });
  const when = formatAgo(run.view.ended?.at ?? Date.now(), Date.now());
  const see = await nextCommandFor(context, run, ['status', id]);
  throw new CommandError('run_ended', `run ${visible(id)} has ended: ${how}, ${when}. See: ${see}`);
}

/**
 * Throws within seconds if no worker answers on the run's task queue: the run itself accepts
 * decisions, and it needs a worker for that.
 */
export async function requireWorker(
  context: CliContext,
  { client, run }: OpenedRun,
  decision: string,
): Promise<void> {
  if (await hasLiveWorker(client, run.taskQueue)) return;
  throw new CommandError(
    'no_worker',
    `${decision} needs a worker, and none answers on task queue "${visible(run.taskQueue)}". ` +
      `Start one with: ${await workerCommands(context, run)}; then run this command again.`,
  );
}

/** Returns the two commands that start a worker for a run. */
export async function workerCommands(context: CliContext, run: RunReading): Promise<string> {
  const worker = await nextCommandFor(context, run, ['worker']);
  const attach = await nextCommandFor(context, run, ['attach', run.id]);
  return `${worker}  (or, to follow the run as well: ${attach})`;
}
