import type { Client } from '@temporalio/client';
import { agentProblem } from '../client/fork-run.js';
import { toRunStatus } from '../client/status.js';
import { NoRunError } from '../core/errors.js';
import { statusText } from '../core/state/status.js';
import { visible } from '../core/state/summaries.js';
import { endOfRun } from '../history/pending-work.js';
import { type RunReading, readRun } from '../history/read-run.js';
import { hasLiveWorker } from '../temporal/pollers.js';
import { type CliContext, CommandError, UsageError } from './context.js';
import { formatAgo, formatDateTime } from './format/format.js';
import { NothingRunsError, isWorkedElsewhere } from './hosting/hosting.js';
import { noteServer } from './hosting/server-notes.js';
import { configFile } from './input/load-config.js';
import { inFlags } from './input/run-settings.js';
import { nextCommand, nextCommandAbout, nextCommandFor } from './reports/next-command.js';

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
    const stores = archive ? await context.stores() : {};
    const run = await readRun(client, id, stores);
    if (run.description === null) noteArchived(context, run);
    return { client, run };
  } catch (error) {
    if (!NoRunError.isInstance(error)) throw error;
    const isArchived =
      !archive &&
      (await readRun(client, id, await context.stores()).then(
        () => true,
        () => false,
      ));
    if (isArchived) {
      throw new CommandError(
        'run_ended',
        `the server has deleted run ${visible(id)}, which has ended; read it from the archive with: ${nextCommandAbout(context, ['transcript', id])}`,
        { cause: error },
      );
    }
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
  await requireOpen(context, opened);
  return opened;
}

/** Throws an error that reports how and when a run ended, if it has. */
export async function requireOpen(context: CliContext, { run }: OpenedRun): Promise<void> {
  const { id } = run;
  const end = endOfRun(run);
  if (end === null) return;
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

/**
 * Throws a `UsageError` if the agent is not in the configuration, or accepts no arguments. Without
 * a configuration file, the agent may exist on a worker elsewhere.
 */
export async function checkAgent(
  context: CliContext,
  input: Parameters<typeof agentProblem>[1],
): Promise<void> {
  const { agents } = await context.config();
  const { agent } = input;
  const problem = agentProblem(agents, input);
  if (problem === null) return;
  const { config: file } = context.options;
  const isBuiltIn = configFile({ file, folder: process.cwd(), env: context.env }) === null;
  const isKnown = agents.some(({ name }) => name === agent);
  if (isBuiltIn && !isKnown && (await isServed(context))) return;
  throw new UsageError(inFlags(problem));
}

/** Returns whether a worker elsewhere answers. Starts no server. */
async function isServed(context: CliContext): Promise<boolean> {
  try {
    await context.server({ start: false });
  } catch (error) {
    if (error instanceof NothingRunsError) return false;
    throw error;
  }
  return await isWorkedElsewhere(context, await context.taskQueue());
}

/** Says that what a command has written is in clear, if payloads are encoded, for example encrypted. */
export function noteClear(context: CliContext, client: Client): void {
  if (client.options.loadedDataConverter.payloadCodecs.length === 0) return;
  context.note('It is in clear, although the run is encrypted: keep it where the run may be read.');
}
