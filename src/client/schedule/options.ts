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

/**
 * What happens when a firing is due and an earlier one has not ended. Temporal does not count runs that
 * `allow_all` has let through: no later firing is skipped, waits, or cancels because of them.
 */
export type Overlap = keyof typeof OVERLAPS;

/** When a schedule fires: exactly one of `cron` and `every`. */
export interface ScheduleTimes {
  /**
   * Five fields (minute, hour, day of month, month, day of week), or one of `@hourly`, `@daily`,
   * `@midnight`, `@weekly`, `@monthly`, `@yearly`, and `@annually`. If it limits both the day of month
   * and the day of week, it fires on days that fit both.
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

const cronOption = expected<string>(
  'a cron expression; write for example "0 9 * * MON-FRI"',
  (cron) => typeof cron === 'string' && cron.trim() !== '',
).superRefine((cron, context) => {
  const message = cronProblem(cron);
  if (message !== null) context.addIssue({ code: 'custom', message });
});

const scheduleOptions = z
  .strictObject({
    id: expected(
      `a text of 1 to ${MAX_ID_CHARACTERS} characters`,
      (id) => typeof id === 'string' && id.trim() !== '' && id.length <= MAX_ID_CHARACTERS,
    ),
    cron: cronOption.optional(),
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
  .superRefine(({ cron, every }, context) => {
    if ((cron === undefined) !== (every === undefined)) return;
    const message =
      cron === undefined
        ? 'expected either cron or every, got neither; give one, such as cron: "0 9 * * MON-FRI"'
        : 'expected either cron or every, got both; remove one of them';
    context.addIssue({ code: 'custom', message });
  })
  .refine(({ every, timeZone }) => every === undefined || timeZone === undefined, {
    path: ['timeZone'],
    error: 'expected only with cron, because every counts from 1970 in UTC; omit it, or use cron',
  });

/** The names of all options of a schedule. */
export const SCHEDULE_NAMES: readonly string[] = Object.keys(scheduleOptions.shape);

/**
 * Throws an `InputError` with a line for each fault of a schedule's options. The server alone
 * parses the cron expression, and the check of the run input covers the run's settings. `zone`: what has to
 * be added to an interval that is proposed, because an interval takes no time zone.
 */
export function assertScheduleOptions(options: ScheduleOptions, zone = 'without timeZone'): void {
  const added = options.timeZone === undefined ? '' : ` ${zone}`;
  checkOptions(
    'schedule',
    { schema: scheduleOptions, options },
    (text) =>
      new InputError(text.replace(/; for an interval[a-z ]*, give every: ".*"/m, `$&${added}`)),
  );
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

const FIELDS = 'minute, hour, day of month, month, day of week';
const WORDS = ['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually'];
const MONTHS = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ');
/** The days of each month, of February in a leap year. */
const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * Returns what is wrong with a cron expression, or null: it has other than five fields, or it never fires.
 * The server checks the values of the fields. It would read six fields as those of a year, and not of seconds.
 */
export function cronProblem(cron: string): string | null {
  const fields = cron.trim().split(/\s+/);
  const [first = '', second = '', day = '', month = ''] = fields;
  if (first.startsWith('@')) return wordProblem(first, second, fields.length);
  if (/^(?:CRON_)?TZ=/.test(first)) {
    return `expected five fields without a time zone; give timeZone "${first.replace(/^.*=/, '')}" instead`;
  }
  if (cron.includes('#')) return 'expected five fields without a comment; omit it';
  if (fields.length === 6 || fields.length === 7) return tooManyProblem(first, fields.length);
  if (fields.length !== 5) {
    return `expected five fields (${FIELDS}) or a word such as @daily; write for example "0 9 * * MON-FRI"`;
  }
  const least = leastDay(day);
  const months = monthsIn(month);
  if (least === null || months === null) return null;
  if (months.some((number) => least <= (DAYS[number - 1] ?? 0))) return null;
  return `expected a day that its months have, because it never fires; correct the day of month ${day} or the month ${month}`;
}

function wordProblem(word: string, next: string, count: number): string | null {
  if (count === 1 && WORDS.includes(word)) return null;
  if (word.toLowerCase() === '@every') {
    return `expected five fields or a word such as @daily; for an interval, give every: "${next || '1 hour'}"`;
  }
  return `expected five fields, or one of ${WORDS.join(', ')}; write for example @daily`;
}

function tooManyProblem(first: string, count: number): string {
  const [, step] = /^\*\/(\d{1,5})$/.exec(first) ?? [];
  return `expected five fields (${FIELDS}) and no seconds or years, of which it has ${count}; for an interval of seconds, give every: "${step ?? '10'} seconds"`;
}

/** Returns the first day that a field of days names; null if it cannot be read here. */
function leastDay(field: string): number | null {
  const starts = field.split(',').map((part) => {
    const [, start = ''] = /^(\*|\d{1,2})(?:-\d{1,2})?(?:\/\d{1,2})?$/.exec(part) ?? [];
    return start === '*' ? 1 : Number(start || Number.NaN);
  });
  const least = Math.min(...starts);
  return Number.isInteger(least) && least >= 1 && least <= 31 ? least : null;
}

/** Returns the months that a field names, from 1; null if it cannot be read here. */
function monthsIn(field: string): readonly number[] | null {
  const months: number[] = [];
  for (const part of field.split(',')) {
    const [, start = '', end, step] =
      /^(\*|\d{1,2}|[a-z]{3})(?:-(\d{1,2}|[a-z]{3}))?(?:\/(\d{1,2}))?$/i.exec(part) ?? [];
    const from = start === '*' ? 1 : monthOf(start);
    const open = start === '*' || step !== undefined ? 12 : from;
    const until = end === undefined ? open : monthOf(end);
    const by = Number(step ?? 1);
    if (from === null || until === null || by < 1) return null;
    for (let month = from; month <= until; month += by) months.push(month);
  }
  return months.length === 0 ? null : months;
}

function monthOf(text: string): number | null {
  const number = /^\d/.test(text) ? Number(text) : MONTHS.indexOf(text.toUpperCase()) + 1;
  return number >= 1 && number <= 12 ? number : null;
}
