import { randomUUID } from 'node:crypto';
import { type Client, type ScheduleDescription, isGrpcServiceError } from '@temporalio/client';
import { InputError } from '../../core/errors.js';
import { show, toMs } from '../../core/text/text.js';
import { GRPC, grpcCode } from '../../temporal/grpc.js';
import {
  encodeMapToPayloads,
  encodeScheduleAction,
  encodeSchedulePolicies,
  encodeScheduleSpec,
} from '../../temporal/sdk-internals.js';
import type { RunSettings } from '../../updates/start.js';
import { unknownOption } from '../../validation/unknown-option.js';
import {
  SCHEDULE_NAMES,
  type Overlap,
  type ScheduleOptions,
  assertScheduleOptions,
  overlapOf,
  overlapPolicy,
  scheduleSpec,
} from './options.js';
import type { TriggerResult } from './trigger.js';
import {
  MEMO_KEY,
  type ScheduleDetails,
  type ScheduleMemo,
  type ScheduleRow,
  firingOptions,
  scheduleAction,
  scheduleMemo,
} from './view.js';

/**
 * What an update changes. `null` removes an option, so its default applies. `cron` replaces
 * `every`, and vice versa.
 */
export type ScheduleChanges<Args = unknown> = {
  readonly [Key in keyof Omit<ScheduleOptions, 'id' | 'paused' | 'agent' | 'args'>]?:
    | ScheduleOptions[Key]
    | null;
} & {
  readonly agent?: ScheduleOptions<Args>['agent'] | null;
  readonly args?: RunSettings<NoInfer<Args>>['args'] | null;
};

/** What an update cannot change, and what does instead. */
const FIXED: Readonly<Record<string, string>> = {
  id: 'expected no change, since a schedule keeps its id; create another schedule',
  paused: 'expected no change by an update; call schedule.pause or schedule.resume',
};

/**
 * Returns the options of a schedule with these changes. Throws an `InputError` if they do not fit
 * together.
 */
export function changedOptions(
  { description, memo }: { readonly description: ScheduleDescription; readonly memo: ScheduleMemo },
  changes: ScheduleChanges,
): ScheduleOptions {
  const fixed = Object.keys(FIXED).find((name) => Object.hasOwn(changes, name));
  if (fixed !== undefined) throw new InputError(`${fixed}: ${FIXED[fixed]}`);
  // One that is removed is not in the result, which is checked later.
  const unknown = Object.keys(changes).find((name) => !SCHEDULE_NAMES.includes(name));
  if (unknown !== undefined) {
    throw new InputError(`schedule: ${unknownOption(unknown, SCHEDULE_NAMES)}`);
  }
  const present = presentOptions(description, memo);
  const { cron, every } = changes;
  if (every != null && changes.timeZone === undefined && present.timeZone !== undefined) {
    throw new InputError(
      `timeZone: expected only with cron, because every counts from 1970 in UTC; the schedule has ${show(present.timeZone)}; remove it with timeZone: null`,
    );
  }
  const merged = {
    ...present,
    ...((cron ?? every) != null && { cron: undefined, every: undefined }),
    ...Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)),
    id: present.id,
  };
  const options = Object.fromEntries(Object.entries(merged).filter(([, value]) => value != null));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked in the next line
  const changed = options as unknown as ScheduleOptions;
  assertScheduleOptions(changed, changes.timeZone == null ? 'and timeZone: null' : undefined);
  return changed;
}

function presentOptions(
  { scheduleId: id, action, policies }: ScheduleDescription,
  { cron, everyMs, timeZone }: ScheduleMemo,
): ScheduleOptions {
  const overlap = overlapOf(policies.overlap);
  const [input]: readonly unknown[] = action.args ?? [];
  return {
    ...firingOptions(input),
    id,
    ...(cron !== undefined && { cron }),
    ...(everyMs !== undefined && { every: everyMs }),
    ...(timeZone !== undefined && everyMs === undefined && { timeZone }),
    ...(overlap !== 'terminate_other' && { overlap }),
    ...(policies.catchupWindow > 0 && { catchUp: policies.catchupWindow }),
  };
}

/**
 * Replaces what a schedule does and when. It stays paused or active. The SDK's own update writes no
 * headers.
 */
export async function replaceSchedule(
  client: Client,
  { description, memo }: { readonly description: ScheduleDescription; readonly memo: ScheduleMemo },
  options: ScheduleOptions,
): Promise<void> {
  const { id, overlap, catchUp } = options;
  const { namespace, identity, loadedDataConverter: converter } = client.options;
  const { schedule } = description.raw;
  const action = scheduleAction(client, options, description.action.taskQueue);
  const compiled = { ...action, workflowId: id, args: [...action.args] };
  const headers = await encodeMapToPayloads(converter, {
    [MEMO_KEY]: scheduleMemo(options, memo),
  });
  const request = {
    namespace,
    identity,
    scheduleId: id,
    requestId: randomUUID(),
    schedule: {
      spec: encodeScheduleSpec(scheduleSpec(options)),
      action: await encodeScheduleAction(converter, namespace, compiled, headers),
      policies: {
        ...schedule?.policies,
        ...encodeSchedulePolicies({
          overlap: overlapPolicy(overlap ?? 'skip'),
          ...(catchUp !== undefined && { catchupWindow: toMs(catchUp) }),
        }),
      },
      state: schedule?.state ?? {},
    },
  };
  try {
    await client.workflowService.updateSchedule(request);
  } catch (error) {
    if (!isGrpcServiceError(error) || options.cron === undefined) throw error;
    throw grpcCode(error) === GRPC.invalidArgument ? refusedCron(options.cron, error) : error;
  }
}

/** Returns the error for a cron expression that the server does not accept. */
export function refusedCron(cron: string, error: Error): InputError {
  const message = `cron: expected an expression, e.g. "0 9 * * MON-FRI", got ${show(cron)} (${serverText(error)})`;
  return new InputError(message, { cause: error });
}

/** Returns what the server says, without the name of its code. */
function serverText(error: Error): string {
  const text = isGrpcServiceError(error) ? error.details : error.message;
  return text.replace(/^Invalid schedule spec: /, '');
}

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
  /** The reason, for people; `list` and `describe` show it. Default: that of the last time if it is so already, else none. */
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
   * Creates a schedule. Rejects with an `InputError` (`input`) if an option is invalid, and with an
   * `IdTakenError` (`id_taken`) if a schedule with this id exists.
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
  create<Args = unknown>(options: ScheduleOptions<Args>): Promise<void>;
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
  update<Args = unknown>(id: string, changes: ScheduleChanges<Args>): Promise<void>;
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
   * `overlap` applies to this firing only; default: that of the schedule, so the server may skip the
   * firing, or let it wait. Returns what it did, which takes up to 3 s to see. Rejects with a
   * `NoScheduleError` (`no_schedule`).
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { firing, run } = await client.schedule.trigger('nightly');
   * console.log(firing === 'fired' ? `run ${run}` : firing);
   * ```
   */
  trigger(id: string, options?: { readonly overlap?: Overlap }): Promise<TriggerResult>;
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
