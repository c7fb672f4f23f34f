import type { Schedules } from '../../client/schedule/methods.js';
import { createSchedules } from '../../client/schedule/schedule.js';
import { InputError, NoScheduleError } from '../../core/errors.js';
import { type CliContext, UsageError } from '../context.js';
import { noteServer } from '../hosting/server-notes.js';
import { osUser } from '../input/option-parsers.js';
import { inFlags } from '../input/run-settings.js';
import { nextCommandOf } from '../reports/next-command.js';

/** Runs `work` with the schedules of the server. Throws a `UsageError` for invalid input. */
export async function withSchedules<T>(
  context: CliContext,
  work: (schedules: Schedules) => Promise<T>,
): Promise<T> {
  noteServer(context, await context.server());
  const taskQueue = await context.taskQueue();
  const place = { taskQueue, by: osUser(), config: null };
  try {
    return await work(createSchedules(await context.client(), place));
  } catch (error) {
    if (InputError.isInstance(error))
      throw new UsageError(asOptions(error.message), { cause: error });
    if (!NoScheduleError.isInstance(error)) throw error;
    const list = nextCommandOf(context, ['schedule', 'list']);
    throw new Error(`${error.message}; list schedules with: ${list}`, { cause: error });
  }
}

const TIMES = ['agent', 'cron', 'every', 'to', 'overlap'];

const DURATION = 'a duration such as 30s, "90 min", 2h, or "3 days"';

/** Replaces the field names at the beginnings of lines by options and operands. */
export function asOptions(text: string): string {
  return (
    inFlags(text.replace(/^schedule: /, ''), TIMES)
      .replace(
        /^expected either cron or every, got (\w+); (?:give one, such as cron: |remove)/m,
        (_, got: string) =>
          `schedule: expected either --cron or --every, got ${got}; ` +
          (got === 'both' ? 'remove' : 'give one, such as --cron '),
      )
      .replace(
        /^message: expected text, got an empty string$/m,
        'MESSAGE: expected the message of each firing, got none',
      )
      .replace(/^message: /m, 'MESSAGE: ')
      .replace(/(; for an interval(?: of seconds)?), give every: /, '$1, give --every ')
      .replace(/ without timeZone$/m, ' without --time-zone')
      .replace(/ and timeZone: null$/m, ' and --without time-zone')
      .replace(/; give timeZone (?=".*instead$)/m, '; give --time-zone ')
      .replace('only with cron, because every counts', 'only with --cron, because --every counts')
      .replace(/; omit it, or use cron$/m, '; omit it, or use --cron')
      .replace(/; remove it with timeZone: null$/m, '; remove it with --without time-zone')
      // A number of milliseconds is not a duration on a command line.
      .replace('a whole number of ms or words such as "30 seconds" or "2 days"', DURATION)
      .replace('such as "90 seconds" or 90000', 'such as 90s')
  );
}
