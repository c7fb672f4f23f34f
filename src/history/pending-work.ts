import type { WorkflowExecutionDescription } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { inlineCalls } from '../core/calls/batch.js';
import { isReport } from '../core/guards/recorded.js';
import { nextAction } from '../core/run/next-action.js';
import { failed } from '../core/state/change.js';
import type { RunState } from '../core/state/state.js';
import { callSummary, visible } from '../core/state/summaries.js';
import { getOutcome, nothingSpent } from '../core/state/turn.js';
import { isObject } from '../core/text/json.js';
import { formatDuration } from '../core/text/text.js';
import type { AttemptReport, FailReason, Outcome } from '../core/transcript/outcome.js';
import { optionalTsToMs } from '../temporal/sdk-internals.js';
import { payloadValue } from '../temporal/server-answers.js';
import type { HistoryEvent } from './history-event.js';
import type { EndedEvent, InFlight, Projection } from './projection.js';
import type { RunReading } from './read-run.js';

type RawActivity = NonNullable<
  NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number]
>;
type RawFailure = NonNullable<RawActivity['lastFailure']>;

/** Temporal's numbers of the states of pending activities and workflow tasks. */
const SCHEDULED = 1;
const STARTED = 2;
const CANCEL_REQUESTED = 3;

/** An activity that has not ended, as the server shows it. All times are Unix time in ms. */
interface PendingActivity {
  readonly activityId: string;
  /** From 1. */
  readonly attempt: number;
  /** When a worker started this attempt; null while none has. */
  readonly startedAt: number | null;
  /** When this attempt is available to workers; in the future while the server delays a retry. */
  readonly dueAt: number;
  /** Whether an operator has paused it. */
  readonly paused: boolean;
  /** The reports of its failed attempts. */
  readonly reports: readonly AttemptReport[];
}

/** The pending work of a run. */
export interface PendingWork {
  /** Pending activities by id. */
  readonly activities: ReadonlyMap<string, PendingActivity>;
  /** Unix time in ms since which the workflow itself waits for a worker; null if it does not. */
  readonly workflowDueAt: number | null;
  /** How often workers have failed, one after the other, to continue the workflow. */
  readonly workflowFailures: number;
}

/** Returns the pending work in the description of a run; none without a description. */
export function pendingWork(description: WorkflowExecutionDescription | null): PendingWork {
  if (description === null) {
    return { activities: new Map(), workflowDueAt: null, workflowFailures: 0 };
  }
  const { raw } = description;
  const activities = (raw.pendingActivities ?? []).map(readActivity);
  const task = raw.pendingWorkflowTask;
  return {
    activities: new Map(activities.map((activity) => [activity.activityId, activity])),
    workflowDueAt:
      Number(task?.state) === SCHEDULED ? (optionalTsToMs(task?.scheduledTime) ?? null) : null,
    workflowFailures: Math.max(0, (task?.attempt ?? 1) - 1),
  };
}

function readActivity(raw: RawActivity): PendingActivity {
  const taken = [STARTED, CANCEL_REQUESTED].includes(Number(raw.state));
  const next = optionalTsToMs(raw.nextAttemptScheduleTime) ?? 0;
  return {
    activityId: raw.activityId ?? '',
    attempt: raw.attempt ?? 1,
    startedAt: taken ? (optionalTsToMs(raw.lastStartedTime) ?? null) : null,
    dueAt: Math.max(next, optionalTsToMs(raw.scheduledTime) ?? 0),
    paused: raw.paused ?? false,
    reports: [
      ...reportsIn(raw.heartbeatDetails?.payloads),
      ...causeChain(raw.lastFailure).flatMap(({ applicationFailureInfo }) =>
        reportsIn(applicationFailureInfo?.details?.payloads),
      ),
    ],
  };
}

/** Returns a failure and its causes. A timeout's cause is the failure of the previous attempt. */
function causeChain(failure: RawFailure | null | undefined): readonly RawFailure[] {
  return failure ? [failure, ...causeChain(failure.cause)] : [];
}

function reportsIn(payloads: readonly Payload[] | null | undefined): readonly AttemptReport[] {
  return (payloads ?? []).flatMap((payload) => {
    try {
      return reportsOf(payloadValue(payload));
    } catch {
      return [];
    }
  });
}

/** Returns the reports in the result or failure of an activity; none if it holds something else. */
export function reportsOf(recorded: unknown): readonly AttemptReport[] {
  if (!isObject(recorded)) return [];
  const { reports, result } = recorded;
  // The result of a `verify`, or of a person's decision, holds that of the call.
  return Array.isArray(reports) ? reports.filter(isReport) : reportsOf(result);
}

const KEPT = 10;

/** Returns the newest failed attempts of a run's model calls, at most ten, newest last. */
export function failedAttempts(
  events: readonly HistoryEvent[],
  { activities }: PendingWork,
): readonly AttemptReport[] {
  const recorded = events.flatMap((event) => {
    if (event.type === 'completed') return reportsOf(event.result);
    return event.type === 'failed' ? event.failure.details.flatMap(reportsOf) : [];
  });
  const pending = [...activities.values()].flatMap(({ reports }) => reports);
  // An activity that keeps failing repeats the reports of its earlier attempts.
  const unique = new Map(
    [...recorded, ...pending].map((report) => [`${report.at} ${report.attempt}`, report]),
  );
  return [...unique.values()].toSorted((a, b) => a.at - b.at).slice(-KEPT);
}

/** Milliseconds after which an unstarted task is shown as waiting for a worker. */
const TAKEN_WITHIN_MS = 1_000;

/**
 * Returns what the run is doing at `now`, such as `read_file src/a.ts (3 s, attempt 2)`; null for
 * nothing.
 */
export function currentActivity(
  { view, work }: { readonly view: Projection; readonly work: PendingWork },
  now: number,
): string | null {
  if (view.ended !== null) return null;
  const model = view.state?.config.definition.model ?? '';
  const each = [...view.inFlight.values()].map(
    (one) => `${nameOf(one, model)} (${progressOf(one, work.activities.get(one.activityId), now)})`,
  );
  if (each.length > 0) return each.join(', ');
  const inline = work.workflowDueAt === null && view.state !== null ? inlineWork(view.state) : [];
  if (inline.length > 0) return inline.join(', ');
  const waitsMs = now - (work.workflowDueAt ?? now);
  return waitsMs < TAKEN_WITHIN_MS ? null : `waits for a worker (${seconds(waitsMs)})`;
}

/** Returns the calls that the workflow task under way executes itself. */
function inlineWork(state: RunState): readonly string[] {
  if (nextAction(state).type !== 'run-calls') return [];
  return inlineCalls(state).map((call) => `${callSummary(call)} (inline)`);
}

function nameOf({ activity, call, summary }: InFlight, model: string): string {
  if (activity === 'callModel') return visible(`${model}, ${summary}`);
  if (summary !== '') return visible(summary);
  return call === null ? visible(activity) : callSummary(call);
}

function progressOf(one: InFlight, pending: PendingActivity | undefined, now: number): string {
  if (pending === undefined) return seconds(now - one.at);
  const { attempt, startedAt, dueAt, paused } = pending;
  const again = attempt > 1 ? [`attempt ${attempt}`] : [];
  if (startedAt !== null) return [seconds(now - startedAt), ...again].join(', ');
  if (paused) return ['paused', ...again].join(', ');
  if (dueAt > now) return `attempt ${attempt} in ${seconds(dueAt - now)}`;
  if (now - dueAt < TAKEN_WITHIN_MS) return [seconds(now - dueAt), ...again].join(', ');
  return ['waits for a worker', seconds(now - dueAt), ...again].join(', ');
}

function seconds(ms: number): string {
  return formatDuration(ms, { as: 'rounded' });
}

/** How a run ended, by itself or by Temporal. */
interface EndOfRun {
  /** The outcome's reason; `terminated` or `timed_out` if Temporal ended the run. */
  readonly reason: string;
  readonly outcome: Outcome;
}

/** Returns how a run ended; null for a run that continues, even in a later segment. */
export function endOfRun(run: Pick<RunReading, 'view' | 'terminatedWhy'>): EndOfRun | null {
  const { ended, state } = run.view;
  if (ended === null || ended.how === 'continued') return null;
  const recorded = run.view.outcome ?? (state === null || state.open ? null : getOutcome(state));
  if (recorded !== null) return { reason: recorded.reason, outcome: recorded };
  const end = { reason: outsideReason(ended), message: messageOf(ended, run.terminatedWhy) };
  const { steps, toolCalls, usage } = nothingSpent(null);
  const nothing = { answer: null, output: null, steps, toolCalls, usage, segments: 1 };
  return {
    reason: end.reason,
    outcome:
      state === null
        ? { status: 'failed', reason: end.reason, ...nothing, error: end.message }
        : failed(state, end),
  };
}

function outsideReason({ how }: EndedEvent): FailReason {
  if (how === 'terminated') return 'terminated';
  return how === 'timed_out' ? 'timed_out' : 'error';
}

function messageOf({ how, failure }: EndedEvent, why: string): string {
  if (failure !== undefined) return failure.message;
  const suffix = why === '' ? '' : `: ${why}`;
  if (how === 'terminated') return `the workflow was terminated from outside${suffix}`;
  if (how === 'timed_out') return 'the workflow exceeded its execution timeout';
  return `the workflow ended (${how}) without an outcome`;
}
