import type { ScheduleOverlapPolicy, ScheduleSpec } from '@temporalio/client';
import { z } from 'zod';
import { InputError } from '../../core/errors.js';
import { MAX_DURABLE_MS, toMs, type Duration } from '../../core/text/text.js';
import type { AgentLike, RunSettings } from '../../updates/start.js';
import {
  checkOptions,
  expected,
  type OptionSchemas,
  duration,
} from '../../validation/check-options.js';

/** What happens when a firing is due and the previous one has not ended. */
export type Overlap = keyof typeof OVERLAPS;

/** When a schedule fires: exactly one of `cron` and `every`. */
export interface ScheduleTimes {
  /**
   * Five fields (minute, hour, day of month, month, day of week), or a word such as `@daily`.
   * Required without `every`.
   */
  readonly cron?: string;
  /**
   * The time between firings, counted from 1970. A duration of whole seconds: ms, or words such as
   * '2 hours'. Required without `cron`.
   */
  readonly every?: Duration;
  /** The time zone of `cron`, such as `Europe/Berlin`; default UTC. */
  readonly timeZone?: string;
}

/** What a schedule does, and when. */
export interface ScheduleOptions<Args = unknown> extends ScheduleTimes, RunSettings<NoInfer<Args>> {
  /** Names the schedule; its runs are named after it and the time of their firing. */
  readonly id: string;
  /**
   * The agent that does the work. Required, except with `to`, which needs it only to start a run
   * that does not exist.
   */
  readonly agent?: AgentLike<unknown, unknown, unknown, Args>;
  /** The message of each firing. */
  readonly message: string;
  /** Id of an open run that gets the message; default: each firing is a run of its own. */
  readonly to?: string;
  /** Default `skip`. With `to`, a firing has ended when the run has the message. */
  readonly overlap?: Overlap;
  /**
   * How late a firing may still be made up for after the server was down. A duration of at least 10
   * seconds: ms, or words such as '2 days'; default one year.
   */
  readonly catchUp?: Duration;
  /** Whether the schedule starts paused; default false. */
  readonly paused?: boolean;
}

const OVERLAPS = {
  skip: 'SKIP',
  buffer_one: 'BUFFER_ONE',
  buffer_all: 'BUFFER_ALL',
  cancel_other: 'CANCEL_OTHER',
  allow_all: 'ALLOW_ALL',
} as const satisfies Readonly<Record<string, ScheduleOverlapPolicy>>;
const overlapOption = z.enum(['skip', 'buffer_one', 'buffer_all', 'cancel_other', 'allow_all']);

/** Leaves room for the time: the id with a time becomes the id of a message or a run. */
const MAX_ID_CHARACTERS = 150;
const SECOND_MS = 1_000;
/** The server treats any shorter time as this one. */
const MIN_CATCH_UP_MS = 10_000;

/** The settings of a run, its agent, and its message are checked with the run input. */
const checkedLater = z.unknown().optional();
export const runSettings = {
  limits: checkedLater,
  context: checkedLater,
  args: checkedLater,
  tags: checkedLater,
  archive: checkedLater,
  by: checkedLater,
  rules: checkedLater,
  tenant: checkedLater,
  unattended: checkedLater,
  modelAttempts: checkedLater,
  settings: checkedLater,
} satisfies OptionSchemas<RunSettings>;

const everyOption = duration({
  minMs: SECOND_MS,
  maxMs: MAX_DURABLE_MS,
  range: 'at least 1 second',
}).refine((ms) => ms % SECOND_MS === 0, 'expected whole seconds, such as "90 seconds" or 90000');
const catchUpOption = duration({
  minMs: MIN_CATCH_UP_MS,
  maxMs: MAX_DURABLE_MS,
  range: 'at least 10 seconds',
});

const scheduleOptions = z
  .strictObject({
    id: expected(
      `a text of 1 to ${MAX_ID_CHARACTERS} characters`,
      (id) => typeof id === 'string' && id.trim() !== '' && id.length <= MAX_ID_CHARACTERS,
    ),
    cron: expected(
      'a cron expression; write for example "0 9 * * MON-FRI"',
      (cron) => typeof cron === 'string' && cron.trim() !== '',
    ).optional(),
    every: everyOption.optional(),
    timeZone: expected(
      'a time zone; give a name such as "Europe/Berlin", or omit it for UTC',
      isTimeZone,
    ).optional(),
    overlap: overlapOption.optional(),
    catchUp: catchUpOption.optional(),
    paused: z.boolean().optional(),
    agent: checkedLater,
    message: checkedLater,
    to: checkedLater,
    ...runSettings,
  } satisfies OptionSchemas<ScheduleOptions>)
  .refine(
    ({ cron, every }) => (cron === undefined) !== (every === undefined),
    'expected either cron, e.g. "0 9 * * MON-FRI", or every, e.g. "1 hour"',
  );

/**
 * Throws an `InputError` with a line for each fault of a schedule's options. The server alone
 * parses the cron expression, and the check of the run input covers the run's settings.
 */
export function assertScheduleOptions(options: ScheduleOptions): void {
  checkOptions('schedule', { schema: scheduleOptions, options }, (text) => new InputError(text));
}

const note = z.strictObject({ note: z.string().optional() });
const actOptions = {
  pause: note,
  resume: note,
  trigger: z.strictObject({ overlap: overlapOption.optional() }),
  backfill: z.strictObject({
    from: checkedLater,
    to: checkedLater,
    overlap: overlapOption.optional(),
  }),
} as const;

/** Throws an `InputError` with a line for each fault of the options of this method. */
export function assertActOptions(method: keyof typeof actOptions, options: unknown): void {
  checkOptions(`schedule.${method}`, { schema: actOptions[method], options });
}

/** Returns Temporal's name of an overlap policy. Throws an `InputError` for an unknown one. */
export function overlapPolicy(overlap: Overlap): ScheduleOverlapPolicy {
  const schema = z.strictObject({ overlap: overlapOption });
  checkOptions('schedule', { schema, options: { overlap } }, (text) => new InputError(text));
  return OVERLAPS[overlap];
}

/** Returns perdure's name of an overlap policy; `terminate_other` was set by other means. */
export function overlapOf(policy: ScheduleOverlapPolicy): Overlap | 'terminate_other' {
  return overlapOption.options.find((name) => OVERLAPS[name] === policy) ?? 'terminate_other';
}

/** Returns the times of checked options in Temporal's form. */
export function scheduleSpec({ cron, every, timeZone }: ScheduleTimes): ScheduleSpec {
  if (cron === undefined) return { intervals: every === undefined ? [] : [{ every: toMs(every) }] };
  return { cronExpressions: [cron], ...(timeZone !== undefined && { timezone: timeZone }) };
}

function isTimeZone(timeZone: unknown): boolean {
  try {
    Intl.DateTimeFormat('en', { timeZone: String(timeZone) });
    return typeof timeZone === 'string';
  } catch {
    return false;
  }
}
