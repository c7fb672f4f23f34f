import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  isCancellation,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { FactOf, Task } from '../core/facts.js';
import { parseProblem, type ActivityProblem } from '../core/failure.js';
import { misfitMessage } from '../core/guards/recorded.js';

// The end of an activity: its checked result, or the data of its failure.

/**
 * Returns the recorded result of an activity if it has the right form. Otherwise, throws the
 * failure of an activity that cannot do its work, because an operator may complete an activity with
 * any value.
 */
export function checkedResult<T>(
  activity: string,
  fits: (value: unknown) => value is T,
  value: unknown,
): T {
  if (fits(value)) return value;
  const message = misfitMessage(activity, value);
  const problem: ActivityProblem = { type: 'failed', reason: 'error', message };
  throw ApplicationFailure.create({
    type: 'Failed',
    nonRetryable: true,
    message,
    details: [problem],
  });
}

/** Returns the problem that perdure's own activities store in a failure; null if there is none. */
export function activityProblem(error: unknown): ActivityProblem | null {
  const cause = failureCause(error);
  return cause instanceof ApplicationFailure ? parseProblem(cause.details) : null;
}

/** Returns what the history records about an activity that did not complete. */
export function failureFact(
  task: Task,
  error: unknown,
): Omit<FactOf<'failed'>, 'at'> | Omit<FactOf<'cancelled'>, 'at'> {
  const cause = failureCause(error);
  if (isCancellation(error)) {
    const details = cause instanceof CancelledFailure ? cause.details : undefined;
    return { type: 'cancelled', task, ...(details && { details }) };
  }
  const isOurs = cause instanceof ApplicationFailure;
  const failure = {
    message: failureMessage(error),
    type: isOurs ? (cause.type ?? '') : '',
    timedOut: cause instanceof TimeoutFailure,
    details: isOurs ? (cause.details ?? []) : [],
  };
  return { type: 'failed', task, failure };
}

/** Returns the innermost message, for people. */
export function failureMessage(error: unknown): string {
  const cause = failureCause(error);
  const inner = cause instanceof TimeoutFailure ? (cause.cause ?? cause) : cause;
  return inner instanceof Error ? inner.message : String(inner);
}

/**
 * Returns the failure inside an `ActivityFailure`; for a timeout, that of the last attempt, if any.
 */
function failureCause(error: unknown): unknown {
  if (!(error instanceof ActivityFailure)) return error;
  const { cause } = error;
  if (cause instanceof TimeoutFailure && cause.cause instanceof ApplicationFailure)
    return cause.cause;
  return cause;
}
