import { type ActivityResult, optionalTsToMs } from '../temporal/sdk-internals.js';
import { type ActivityHost, TIMEOUT, placeOf, timeoutFailure } from './activities.js';
import { TaskLostError, createAttempt, runAttempt } from './attempt.js';
import type { LocalActivity } from './outgoing.js';
import type { Segment } from './segment.js';

/** Executes a local activity, which has one attempt. Rejects with a `TaskLostError`. */
export async function runLocalActivity(
  host: ActivityHost,
  segment: Segment,
  local: LocalActivity,
): Promise<ActivityResult> {
  const now = Date.now();
  const timeoutMs = optionalTsToMs(local.startToCloseTimeout) ?? 0;
  const attempt = createAttempt(
    host,
    {
      ...placeOf(segment),
      activityId: local.activityId ?? '',
      activityType: local.activityType ?? '',
      attempt: 1,
      isLocal: true,
      heartbeatDetails: undefined,
      scheduledTimestampMs: now,
      currentAttemptScheduledTimestampMs: now,
      startToCloseTimeoutMs: timeoutMs,
      scheduleToCloseTimeoutMs: optionalTsToMs(local.scheduleToCloseTimeout) ?? 0,
    },
    () => undefined,
  );
  const input = { payloads: local.arguments ?? [] };
  const header = { fields: local.headers ?? {} };
  let cancel: (() => void) | undefined;
  const over = new Promise<ActivityResult>((resolve, reject) => {
    host.locals.set(attempt, () => reject(new TaskLostError()));
    const failure = timeoutFailure(TIMEOUT.startToClose);
    const at = host.clock.now() + timeoutMs;
    cancel = host.clock.set({ at, kind: 'timeout' }, () => resolve({ failed: { failure } }));
  });
  try {
    return await Promise.race([runAttempt(host, attempt, { input, header }), over]);
  } finally {
    host.locals.delete(attempt);
    cancel?.();
  }
}
