import { ActivityFailure, ApplicationFailure, TimeoutFailure } from '@temporalio/workflow';
import { problemText } from '../core/text/format-value.js';
import { parseProblem, type ActivityProblem } from '../core/failure.js';

/** What a failed activity has to say, if it is one of ours and says it. */
export function problemOf(error: unknown): ActivityProblem | null {
  const cause = causeOf(error);
  return cause instanceof ApplicationFailure ? parseProblem(cause.details) : null;
}

/** The agent can be loaded, by an activity that is given more time. */
export function needsTime(error: unknown): boolean {
  const cause = causeOf(error);
  return cause instanceof ApplicationFailure && cause.type === 'AgentNeedsTime';
}

/** The worker was lost or the time was up: whether the work took effect, nobody can say. */
export function isLost(error: unknown): boolean {
  return causeOf(error) instanceof TimeoutFailure;
}

/** The innermost message, for people. */
export function messageOf(error: unknown): string {
  const cause = causeOf(error);
  const inner = cause instanceof TimeoutFailure ? (cause.cause ?? cause) : cause;
  return inner instanceof Error ? inner.message : String(inner);
}

/** The failure behind the activity; behind a timeout the last attempt's own, where it left one. */
function causeOf(error: unknown): unknown {
  if (!(error instanceof ActivityFailure)) return error;
  const { cause } = error;
  if (cause instanceof TimeoutFailure && cause.cause instanceof ApplicationFailure)
    return cause.cause;
  return cause;
}

/** What a validator throws: the caller hears it, the history does not. */
export function refusal(message: string): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'Refused',
    nonRetryable: true,
    message: problemText(message),
  });
}
