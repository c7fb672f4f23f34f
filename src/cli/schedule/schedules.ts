import type { Command as Entry } from 'commander';
import type { Schedules, ScheduleChanges } from '../../client/schedule/methods.js';
import { createSchedules } from '../../client/schedule/schedule.js';
import { InputError, NoScheduleError } from '../../core/errors.js';
import type { JsonObject } from '../../core/text/json.js';
import { checkAgent } from '../open-run.js';
import { type CliContext, UsageError } from '../context.js';
import { noteServer } from '../hosting/server-notes.js';
import { withOptions, type OptionName } from '../input/options.js';
import {
  inFlags,
  RUN_SETTINGS,
  runSettings,
  type RunSettingOptions,
} from '../input/run-settings.js';
import { osUser } from '../input/option-parsers.js';
import { nextCommandOf } from '../reports/next-command.js';

/** The options of `schedule create` and `schedule update`. */
export interface ScheduleCommandOptions extends RunSettingOptions {
  readonly id: string;
  /** The words of the message. */
  readonly message: readonly string[];
  readonly agent?: string;
  readonly cron?: string;
  /** Milliseconds. */
  readonly every?: number;
  readonly timeZone?: string;
  readonly to?: string;
  readonly overlap?: string;
  /** Milliseconds. */
  readonly catchUp?: number;
  readonly arg?: JsonObject;
}

/** Declares the arguments and options that define what a schedule does, and when. */
export function declareSchedule(entry: Entry, ...others: readonly OptionName[]): Entry {
  const own = entry
    .argument('<id>', 'the schedule')
    .argument('[message...]', 'the message of each firing');
  const times = ['agent', 'cron', 'every', 'timeZone', 'to', 'overlap', 'catchUp'] as const;
  return withOptions(own, ...times, ...RUN_SETTINGS, 'arg', ...others);
}

/** Returns the fields of a schedule that the options set. */
export function namedFields(options: ScheduleCommandOptions): ScheduleChanges {
  const { message, agent, cron, every, timeZone, to, overlap, catchUp, arg: args } = options;
  const { by, ...settings } = runSettings(options);
  const fields = {
    ...(message.length > 0 && { message: message.join(' ') }),
    agent,
    cron,
    every,
    timeZone,
    to,
    overlap,
    catchUp,
    args,
    ...settings,
    // Without a name, the schedule keeps that of its creator.
    ...(options.by !== undefined && { by }),
  };
  const named = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(named);
}

/** Throws a `UsageError` if an agent is named that no worker can have; see `checkAgent`. */
export async function checkNamedAgent(
  context: CliContext,
  { agent, arg }: Pick<ScheduleCommandOptions, 'agent' | 'arg'>,
): Promise<void> {
  if (agent === undefined) return;
  const place = { taskQueue: await context.taskQueue(), otherwise: 'later' } as const;
  await checkAgent(context, { agent, args: arg }, place).catch((error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(asOptions(error.message), { cause: error });
  });
}

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

/** Replaces the field names at the beginnings of lines by options and operands. */
function asOptions(text: string): string {
  return inFlags(text.replace(/^schedule: /, ''), TIMES)
    .replace(
      /^expected either cron, e\.g\. .*$/m,
      'schedule: expected either --cron or --every; give one, such as --every 1h',
    )
    .replace(
      /^message: expected text, got an empty string$/m,
      'MESSAGE: expected the message of each firing, got none',
    )
    .replace(/^message: /m, 'MESSAGE: ');
}
