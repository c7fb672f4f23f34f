import { isReport, isToolResult } from '../../core/guards/recorded.js';
import type { Failure } from '../../core/run/events.js';
import { nodeOfCall } from '../../core/state/turn-definition.js';
import { WORK } from '../../core/state/work.js';
import { isObject } from '../../core/text/json.js';
import { shorten } from '../../core/text/text.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import type { AttemptFailure, AttemptReport, Retried } from '../../core/transcript/outcome.js';
import type { HistoryEvent } from '../history-event.js';

/** An activity, or the run of a called agent, that is scheduled and has not ended. */
export interface InFlight {
  readonly activity: string;
  readonly activityId: string;
  readonly summary: string;
  readonly call: ToolCall | null;
  /** The input of the activity. */
  readonly input: Readonly<Record<string, unknown>>;
  /** Its attempts so far; absent while the history does not show them. */
  readonly attempts?: number;
  /** Why the attempt before the last one failed; absent if none did. */
  readonly lastFailure?: Failure;
  /** When it was scheduled: Unix time in ms. */
  readonly at: number;
}

/** The work in flight of a run, and the attempts at work. */
export interface Noted {
  readonly inFlight: Map<number, InFlight>;
  /** The attempts at calls and model calls that were retried, by the number of their message. */
  readonly retriedByMessage: Map<number, Retried>;
  /** The same for work without a message so far, by call id or `model`. */
  readonly retriedWork: Map<string, Retried>;
}

/** The most failed attempts that are kept of a call, and the characters of the message of each. */
const [MAX_FAILURES, MAX_MESSAGE] = [10, 300];

/** Attempts so far, also of work whose first attempt has succeeded. */
export const NO_ATTEMPTS: Retried = { attempts: 0, failures: [] };

/**
 * Returns the name of the call or the model call that an activity attempts: the id of the call, or
 * `model`. Null for other work, such as the search for a worker that can execute a call.
 */
export function attemptedWork({ activity, call, input }: InFlight): string | null {
  if (activity === 'callModel') return WORK.model;
  if (activity !== 'runTool' || call === null || nodeOfCall(call) !== null) return null;
  return input['find'] === true || input['judge'] === true ? null : call.id;
}

/** Returns the reports in the result or failure of an activity; none if it holds something else. */
export function reportsOf(recorded: unknown): readonly AttemptReport[] {
  if (!isObject(recorded)) return [];
  const { reports, result } = recorded;
  // The result of a `verify`, or of a person's decision, holds that of the call.
  return Array.isArray(reports) ? reports.filter(isReport) : reportsOf(result);
}

/** Returns the reports on failed attempts, by the turn of the model call. */
export function reportsByTurn(
  events: readonly HistoryEvent[],
): readonly (readonly [turn: number, report: AttemptReport])[] {
  const turns = new Map<number, number>();
  return events.flatMap((event) => {
    if (event.type === 'scheduled') {
      const turn = isObject(event.input) ? event.input['turn'] : undefined;
      if (typeof turn === 'number') turns.set(event.id, turn);
    }
    if (event.type !== 'completed' && event.type !== 'failed') return [];
    const turn = turns.get(event.scheduled);
    if (turn === undefined) return [];
    const recorded = event.type === 'completed' ? [event.result] : event.failure.details;
    return recorded.flatMap(reportsOf).map((report) => [turn, report] as const);
  });
}

/** Returns a failed attempt as the server has recorded it. */
export function attemptFailure(
  { message, timedOut }: Pick<Failure, 'message' | 'timedOut'>,
  { attempt, at }: Pick<AttemptFailure, 'attempt' | 'at'>,
): AttemptFailure {
  const type = timedOut ? { type: 'timeout' } : {};
  return { attempt, at, ...type, message: shorten(message, MAX_MESSAGE) };
}

/** Adds failed attempts of one activity to those of earlier ones. A report has the time. */
export function addFailures(
  before: Retried,
  found: {
    readonly attempts: number;
    readonly reports: readonly AttemptReport[];
    readonly failures: readonly AttemptFailure[];
  },
): Retried {
  const { attempts, reports, failures } = found;
  const reported = reports.map(({ attempt, at, type, message }) => ({
    attempt,
    at,
    type,
    message,
  }));
  const byAttempt = new Map([...failures, ...reported].map((one) => [one.attempt, one]));
  const added = [...byAttempt.values()]
    .toSorted((one, other) => one.attempt - other.attempt)
    .map((one) => ({ ...one, attempt: before.attempts + one.attempt }));
  return {
    attempts: before.attempts + attempts,
    failures: [...before.failures, ...added].slice(-MAX_FAILURES),
  };
}

type EndEvent = Extract<HistoryEvent, { type: 'completed' | 'failed' }>;

/** Returns the attempts at work after one of its activities has ended. */
function addAttempts(before: Retried, event: EndEvent, work: InFlight): Retried {
  const { attempts = 1, lastFailure } = work;
  const at = Math.floor(event.at);
  const earlier =
    lastFailure && attempts > 1
      ? [attemptFailure(lastFailure, { attempt: attempts - 1, at: null })]
      : [];
  const last = failureOf(event);
  const isModel = work.activity === 'callModel';
  const recorded = event.type === 'failed' ? event.failure.details[0] : event.result;
  return addFailures(before, {
    attempts: isUndecided(event) ? attempts - 1 : attempts,
    reports: isModel ? reportsOf(recorded) : [],
    failures: [
      ...earlier,
      ...(last === null ? [] : [attemptFailure(last, { attempt: attempts, at })]),
    ],
  });
}

/** Returns why the last attempt of an activity failed; null if it did not. */
function failureOf(event: EndEvent): Pick<Failure, 'message' | 'timedOut'> | null {
  if (event.type === 'failed') return event.failure;
  const { result } = event;
  if (!isToolResult(result) || result.ok !== 'unknown') return null;
  return { message: result.message, timedOut: false };
}

/** Whether an activity has ended before the tool was called: a person, or a server, is asked first. */
function isUndecided(event: EndEvent): boolean {
  if (event.type === 'failed' || !isToolResult(event.result)) return false;
  const { ok } = event.result;
  return ok === 'undecided' || ok === 'not_started' || ok === 'input_required';
}

/** Adds the attempts of an activity that has ended to those of its call or model call. */
export function noteRetried({ inFlight, retriedWork }: Noted, event: HistoryEvent): void {
  if (event.type !== 'completed' && event.type !== 'failed') return;
  const work = inFlight.get(event.scheduled);
  const name = work === undefined ? null : attemptedWork(work);
  if (work === undefined || name === null) return;
  retriedWork.set(name, addAttempts(retriedWork.get(name) ?? NO_ATTEMPTS, event, work));
}

/** Moves the attempts at work to the message that ends it. */
export function moveRetried(
  { retriedWork, retriedByMessage }: Noted,
  name: string,
  n: number,
): void {
  const retried = retriedWork.get(name);
  if (retried === undefined) return;
  retriedWork.delete(name);
  if (retried.failures.length > 0 || retried.attempts > 1) retriedByMessage.set(n, retried);
}
