import { isGrpcServiceError, type Client, type ScheduleDescription } from '@temporalio/client';
import {
  encodeMapToPayloads,
  encodeScheduleAction,
  encodeSchedulePolicies,
  encodeScheduleSpec,
} from '../../temporal/sdk-internals.js';
import { GRPC, grpcCode } from '../../temporal/grpc.js';
import { randomUUID } from 'node:crypto';
import { InputError } from '../../core/errors.js';
import { toMs } from '../../core/text/duration.js';
import { show } from '../../core/text/format-value.js';
import { firingOptions, scheduleAction } from './action.js';
import {
  assertScheduleOptions,
  overlapOf,
  overlapPolicy,
  scheduleSpec,
  type ScheduleOptions,
} from './options.js';
import { MEMO_KEY, scheduleMemo, type ScheduleMemo } from './view.js';

/**
 * What an update changes. `null` removes an option, so its default applies. `cron` replaces
 * `every`, and vice versa.
 */
export type ScheduleChanges = {
  readonly [Key in keyof Omit<ScheduleOptions, 'id' | 'paused'>]?: ScheduleOptions[Key] | null;
};

/**
 * Returns the options of a schedule with these changes. Throws an `InputError` if they do not fit
 * together.
 */
export function changedOptions(
  { description, memo }: { readonly description: ScheduleDescription; readonly memo: ScheduleMemo },
  changes: ScheduleChanges,
): ScheduleOptions {
  const present = presentOptions(description, memo);
  const { cron, every } = changes;
  const merged = {
    ...present,
    ...((cron ?? every) != null && { cron: undefined, every: undefined }),
    // A time zone applies only to a cron expression.
    ...(every != null && { timeZone: undefined }),
    ...Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)),
    id: present.id,
  };
  const options = Object.fromEntries(Object.entries(merged).filter(([, value]) => value != null));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked in the next line
  const changed = options as unknown as ScheduleOptions;
  assertScheduleOptions(changed);
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
    ...(timeZone !== undefined && { timeZone }),
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
  description: ScheduleDescription,
  options: ScheduleOptions,
): Promise<void> {
  const { id, overlap, catchUp } = options;
  const { namespace, identity, loadedDataConverter: converter } = client.options;
  const { schedule } = description.raw;
  const action = scheduleAction(options, description.action.taskQueue);
  const compiled = { ...action, workflowId: id, args: [...action.args] };
  const headers = await encodeMapToPayloads(converter, { [MEMO_KEY]: scheduleMemo(options) });
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
  const message = `cron: expected an expression, e.g. "0 9 * * MON-FRI", got ${show(cron)} (${error.message})`;
  return new InputError(message, { cause: error });
}
