import type { ScheduleOverlapPolicy, ScheduleSpec } from '@temporalio/client';
import { show } from '../../core/input/input.js';
import { type AgentLike, type RunSettings } from '../../updates/run-input.js';
import { InputError } from '../../core/errors.js';

/** What happens when a firing is due and the one before is still under way. */
export type Overlap = 'skip' | 'bufferOne' | 'bufferAll' | 'cancelOther' | 'allowAll';

/** When a schedule fires: exactly one of `cron` and `everyMs`. */
export interface ScheduleTimes {
  /** Five fields (minute, hour, day of month, month, day of week), or `@daily` and the like. */
  readonly cron?: string;
  /** Milliseconds between firings; whole seconds, counted from 1970. */
  readonly everyMs?: number;
  /** Of `cron`, as `Europe/Berlin`; default UTC. */
  readonly timezone?: string;
}

export interface ScheduleOptions extends ScheduleTimes, RunSettings {
  /** Names the schedule; its runs are named after it and the time of their firing. */
  readonly id: string;
  /** Who does the work. With `to`, whom to start where there is no such run; then it may be left out. */
  readonly agent?: AgentLike<unknown>;
  readonly message: string;
  /** Id of an open run that gets the message; default: each firing is a run of its own. */
  readonly to?: string;
  /** Default `skip`. With `to` a firing is over when the message is taken. */
  readonly overlap?: Overlap;
  /** How late a firing may be made up for when the server was down, in ms; default a year. */
  readonly catchUpMs?: number;
  /** Begin paused. */
  readonly paused?: boolean;
}

const OVERLAPS: Readonly<Record<Overlap, ScheduleOverlapPolicy>> = {
  skip: 'SKIP',
  bufferOne: 'BUFFER_ONE',
  bufferAll: 'BUFFER_ALL',
  cancelOther: 'CANCEL_OTHER',
  allowAll: 'ALLOW_ALL',
};
/** A firing's id, with its time, is the id of a message or a run. */
const MAX_ID_CHARACTERS = 150;
const SECOND_MS = 1_000;
/** The server takes any shorter time for this one. */
const SHORTEST_CATCH_UP_MS = 10_000;

/** As Temporal calls it. Throws an `InputError`. */
export function overlapPolicy(overlap: Overlap): ScheduleOverlapPolicy {
  const known = Object.keys(OVERLAPS);
  if (known.includes(overlap)) return OVERLAPS[overlap];
  throw new InputError(`overlap: ${show(overlap)} is none of ${known.join(', ')}`);
}

/** In our words; `terminateOther` was set by other means. */
export function overlapOf(policy: ScheduleOverlapPolicy): Overlap | 'terminateOther' {
  const found = Object.entries(OVERLAPS).find(([, known]) => known === policy);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a key of the above
  return found === undefined ? 'terminateOther' : (found[0] as Overlap);
}

/** Throws an `InputError`; whether a cron expression is one, the server says. */
export function scheduleSpec({ cron, everyMs, timezone }: ScheduleTimes): ScheduleSpec {
  if ((cron === undefined) === (everyMs === undefined)) {
    throw new InputError(
      `when: give either cron, e.g. "0 9 * * MON-FRI", or everyMs, e.g. 3600000 for each hour`,
    );
  }
  if (cron === undefined) return { intervals: [{ every: checkedInterval(everyMs) }] };
  if (typeof cron !== 'string' || cron.trim() === '') {
    throw new InputError(`cron: ${show(cron)} is no expression; give e.g. "0 9 * * MON-FRI"`);
  }
  return { cronExpressions: [cron], ...(timezone !== undefined && checkedZone(timezone)) };
}

/** @returns milliseconds */
function checkedInterval(everyMs: unknown): number {
  const fits = Number.isInteger(everyMs) && Number(everyMs) >= SECOND_MS;
  if (fits && Number(everyMs) % SECOND_MS === 0) return Number(everyMs);
  throw new InputError(
    `everyMs: ${show(everyMs)} is no interval; give whole seconds in milliseconds, from 1000 on`,
  );
}

function checkedZone(timezone: string): { timezone: string } {
  try {
    Intl.DateTimeFormat('en', { timeZone: timezone });
    return { timezone };
  } catch {
    throw new InputError(
      `timezone: ${show(timezone)} is no time zone; give a name like "Europe/Berlin", or leave it out for UTC`,
    );
  }
}

/** Throws an `InputError`. */
export function checkScheduleId(id: string): void {
  if (typeof id === 'string' && id.trim() !== '' && id.length <= MAX_ID_CHARACTERS) return;
  throw new InputError(
    `id: ${show(id)} is no id of a schedule; give a text of 1 to ${MAX_ID_CHARACTERS} characters`,
  );
}

/** @returns milliseconds. Throws an `InputError`. */
export function checkedCatchUp(catchUpMs: number): number {
  if (Number.isInteger(catchUpMs) && catchUpMs >= SHORTEST_CATCH_UP_MS) return catchUpMs;
  throw new InputError(
    `catchUpMs: ${show(catchUpMs)} is too short; give whole milliseconds from ${SHORTEST_CATCH_UP_MS} on`,
  );
}
