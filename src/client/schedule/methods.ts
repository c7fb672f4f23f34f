import type { Overlap, ScheduleOptions } from './options.js';
import type { ScheduleChanges } from './update.js';
import type { ScheduleDetails, ScheduleRow } from './view.js';

/** A time range whose missed firings are made up for. */
export interface BackfillOptions {
  /** The beginning of the range, included: a Date or ISO 8601. */
  readonly from: Date | string;
  /** The end of the range, included: a Date or ISO 8601. */
  readonly to: Date | string;
  /** Default `buffer_all`: one after another. */
  readonly overlap?: Overlap;
}

/** Why a schedule is paused or resumed. */
export interface ScheduleNote {
  /** The reason, for people; `list` and `describe` show it. */
  readonly note?: string | undefined;
}

/**
 * Runs agents on a cron expression or an interval. The server fires them even without a worker.
 * Methods reject with a `NoScheduleError` (`no_schedule`) if perdure has no schedule with the id, even if
 * another program has one; each reads the schedule first. For invalid input, they reject with an
 * `InputError` (`input`).
 */
export interface Schedules {
  /**
   * Creates a schedule. Rejects with an `InputError` (`input`) if an option is invalid or a
   * schedule with this id exists.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const fixed = { agent: 'desk', message: 'Check the orders' };
   * await client.schedule.create({ ...fixed, id: 'weekly', cron: '0 9 * * MON', timeZone: 'Europe/Berlin' });
   * ```
   */
  create(options: ScheduleOptions): Promise<void>;
  /**
   * Changes what a schedule does and when; omitted options stay unchanged. Firings that have
   * started are not affected. Rejects with an `InputError` (`input`) or a `NoScheduleError`
   * (`no_schedule`).
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.schedule.update('nightly', { cron: '0 4 * * *', limits: { costUsd: 1 }, tags: null });
   * ```
   */
  update(id: string, changes: ScheduleChanges): Promise<void>;
  /**
   * Returns the schedules of the namespace that perdure created, in the server's order.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * for (const { id, nextAt } of await client.schedule.list()) console.log(id, nextAt[0]);
   * ```
   */
  list(): Promise<readonly ScheduleRow[]>;
  /**
   * Returns what a schedule does, when it fires, and how its firings went. Rejects with a
   * `NoScheduleError` (`no_schedule`).
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { message, fired, missed } = await client.schedule.describe('nightly');
   * console.log(message, fired, missed);
   * ```
   */
  describe(id: string): Promise<ScheduleDetails>;
  /**
   * Stops the firings until `resume`. Runs that it has started continue. Rejects with a
   * `NoScheduleError` (`no_schedule`).
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.schedule.pause('nightly', { note: 'The shop is closed.' });
   * ```
   */
  pause(id: string, options?: ScheduleNote): Promise<void>;
  /**
   * Resumes a paused schedule. Rejects with a `NoScheduleError` (`no_schedule`).
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.schedule.resume('nightly', { note: 'The shop is open.' });
   * ```
   */
  resume(id: string, options?: ScheduleNote): Promise<void>;
  /**
   * Fires now, even while the schedule is paused. Two triggers within a second count as one firing.
   * `overlap` applies to this firing only; default `allow_all`. Rejects with a `NoScheduleError`
   * (`no_schedule`).
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.schedule.trigger('nightly', { overlap: 'skip' });
   * ```
   */
  trigger(id: string, options?: { readonly overlap?: Overlap }): Promise<void>;
  /**
   * Makes up for the firings of a past time range. Rejects with an `InputError` (`input`) or a
   * `NoScheduleError` (`no_schedule`).
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.schedule.backfill('nightly', { from: '2026-01-30', to: '2026-02-01' });
   * ```
   */
  backfill(id: string, options: BackfillOptions): Promise<void>;
  /**
   * Deletes the schedule. Runs that it has started continue. Rejects with a `NoScheduleError`
   * (`no_schedule`).
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.schedule.delete('nightly');
   * ```
   */
  delete(id: string): Promise<void>;
}
