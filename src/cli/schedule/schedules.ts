import type { Command as Entry } from 'commander';
import type { Schedules } from '../../client/schedule/methods.js';
import { createSchedules } from '../../client/schedule/schedule.js';
import type { ScheduleChanges } from '../../client/schedule/update.js';
import { InputError, NoScheduleError } from '../../core/errors.js';
import type { Json, JsonObject } from '../../core/json.js';
import { checkAgent } from '../check-agent.js';
import type { CliContext } from '../context.js';
import { UsageError } from '../exit-codes.js';
import { noteServer } from '../hosting/note-server.js';
import {
  collectArguments,
  collectValues,
  parseDurationOption,
  parseJsonOption,
  parseNumber,
} from '../input/option-parsers.js';
import { osUser } from '../input/os-user.js';
import { nextCommandOf } from '../reports/next-command.js';

/** The options of `schedule create` and `schedule update`. */
export interface ScheduleCommandOptions {
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
  readonly tag?: readonly string[];
  readonly maxSteps?: number;
  readonly context?: Json;
  readonly arg?: JsonObject;
}

/** Declares the arguments and options that define what a schedule does, and when. */
export function declareSchedule(entry: Entry): Entry {
  return entry
    .argument('<id>', 'the schedule')
    .argument('[message...]', 'the message of each firing')
    .option('--agent <name>', 'name of the agent')
    .option('--cron <expression>', 'five fields, such as "0 9 * * MON-FRI", or @daily')
    .option('--every <duration>', 'instead of --cron: 30s, 5m, 2h, 3d, or 1w', parseDurationOption)
    .option('--time-zone <name>', 'time zone of --cron, such as Europe/Berlin; default: UTC')
    .option('--to <run>', 'send the message to this open run; default: each firing starts a run')
    .option(
      '--overlap <policy>',
      'if the previous firing has not ended: skip (default), buffer_one, buffer_all, cancel_other, allow_all',
    )
    .option(
      '--catch-up <duration>',
      'how late a missed firing still happens after the server was down; default: a year',
      parseDurationOption,
    )
    .option('--tag <tag>', 'a tag of the runs; may be repeated', collectValues)
    .option('--max-steps <n>', 'maximum number of model calls in a turn', parseNumber)
    .option('--context <json>', 'JSON for your tools; the model never sees it', parseJsonOption)
    .option(
      '--arg <name=value>',
      "an argument of the agent's template, or name:=json; may be repeated",
      collectArguments,
    );
}

/** Returns the fields of a schedule that the options set. */
export function namedFields(options: ScheduleCommandOptions): ScheduleChanges {
  const { message, agent, cron, every, timeZone, to, overlap, catchUp } = options;
  const fields = {
    ...(message.length > 0 && { message: message.join(' ') }),
    agent,
    cron,
    every,
    timeZone,
    to,
    overlap,
    catchUp,
    tags: options.tag,
    context: options.context,
    args: options.arg,
    ...(options.maxSteps !== undefined && { limits: { steps: options.maxSteps } }),
  };
  const named = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(named);
}

/** Throws a `UsageError` if an agent is named that is not in the configuration. */
export async function checkNamedAgent(
  context: CliContext,
  { agent, arg }: Pick<ScheduleCommandOptions, 'agent' | 'arg'>,
): Promise<void> {
  if (agent === undefined) return;
  await checkAgent(context, { agent, args: arg }).catch((error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(inFlags(error.message), { cause: error });
  });
}

/** Runs `work` with the schedules of the server. Throws a `UsageError` for invalid input. */
export async function withSchedules<T>(
  context: CliContext,
  work: (schedules: Schedules) => Promise<T>,
): Promise<T> {
  noteServer(context, await context.server());
  const taskQueue = await context.taskQueue();
  const place = { taskQueue, by: osUser(), config: undefined };
  try {
    return await work(createSchedules(await context.client(), place));
  } catch (error) {
    if (InputError.isInstance(error))
      throw new UsageError(inFlags(error.message), { cause: error });
    if (!NoScheduleError.isInstance(error)) throw error;
    const list = nextCommandOf(context, ['schedule', 'list']);
    throw new Error(`${error.message}; list schedules with: ${list}`, { cause: error });
  }
}

const FLAGS: Readonly<Record<string, string>> = {
  agent: '--agent',
  cron: '--cron',
  every: '--every',
  timeZone: '--time-zone',
  to: '--to',
  overlap: '--overlap',
  catchUp: '--catch-up',
  tags: '--tag',
  context: '--context',
  args: '--arg',
  'limits.steps': '--max-steps',
};

/** Replaces the field names at the beginnings of lines by flags. */
function inFlags(text: string): string {
  return text
    .replace(/^schedule: /, '')
    .replaceAll(
      /^(- )?([\w.]+)(?=[:[])/gm,
      (_, dash = '', name: string) => dash + (FLAGS[name] ?? name),
    )
    .replace(
      /^expected either cron, e\.g\. .*$/m,
      'schedule: expected either --cron or --every; give one, such as --every 1h',
    );
}
