import type { Client } from '@temporalio/client';
import { NoRunError, readRun, type RunReading } from '../history/read-run.js';
import { advice } from './reports/next-command.js';
import type { CliContext } from './context.js';
import { noteServer } from './hosting/note-server.js';

/** A run that a command is about, with the client that it was read by. */
export interface OpenedRun {
  readonly client: Client;
  readonly run: RunReading;
}

/** Reads the run. Throws an error that names what to type when there is none. */
export async function openRun(context: CliContext, id: string): Promise<OpenedRun> {
  noteServer(context, await context.server());
  const client = await context.client();
  try {
    return { client, run: await readRun(client, id) };
  } catch (error) {
    if (!(error instanceof NoRunError)) throw error;
    throw new Error(`${error.message}; the runs there are: ${advice(context, 'list')}`, {
      cause: error,
    });
  }
}

/** A command about a run as it can be copied; where it needs a worker, with the run's own queue. */
export async function adviceFor(
  context: CliContext,
  { taskQueue }: Pick<RunReading, 'taskQueue'>,
  words: readonly string[],
): Promise<string> {
  const here = await context.taskQueue();
  const options = here === taskQueue ? context.options : { ...context.options, taskQueue };
  return advice({ options }, words.map((word) => shellWord(word)).join(' '));
}

/** An id may hold anything. */
function shellWord(word: string): string {
  return /^[\w./:@=+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
