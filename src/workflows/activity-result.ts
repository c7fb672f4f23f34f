import { ActivityFailure, ApplicationFailure, TimeoutFailure } from '@temporalio/workflow';
import { parseProblem, type ActivityProblem } from '../core/failure.js';
import { misfitMessage } from '../core/guards/recorded.js';

// How an activity ended: its checked result, or what its failure says.

/**
 * Returns the recorded result of an activity if it has the right form: anybody may complete an
 * activity by hand, with any value. Throws the failure of an activity that cannot do its work else.
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

/** Returns the problem that perdure's own activities put into a failure; null if there is none. */
export function activityProblem(error: unknown): ActivityProblem | null {
  const cause = failureCause(error);
  return cause instanceof ApplicationFailure ? parseProblem(cause.details) : null;
}

/** Whether `loadAgent` asks to be called again with more time. */
export function needsTime(error: unknown): boolean {
  const cause = failureCause(error);
  return cause instanceof ApplicationFailure && cause.type === 'AgentNeedsTime';
}

/** Whether the worker was lost or the time was up, so that it is unknown how far the work came. */
export function isLost(error: unknown): boolean {
  return failureCause(error) instanceof TimeoutFailure;
}

/** Returns the innermost message, for people. */
export function failureMessage(error: unknown): string {
  const cause = failureCause(error);
  const inner = cause instanceof TimeoutFailure ? (cause.cause ?? cause) : cause;
  return inner instanceof Error ? inner.message : String(inner);
}

/** The failure inside an `ActivityFailure`; inside a timeout, that of the last attempt if it left one. */
function failureCause(error: unknown): unknown {
  if (!(error instanceof ActivityFailure)) return error;
  const { cause } = error;
  if (cause instanceof TimeoutFailure && cause.cause instanceof ApplicationFailure)
    return cause.cause;
  return cause;
}
