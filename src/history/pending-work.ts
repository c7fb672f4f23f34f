import type { WorkflowExecutionDescription } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { inlineCalls } from '../core/calls/batch.js';
import type { AgentDefinition } from '../core/definition/definition.js';
import { nextAction } from '../core/run/next-action.js';
import { finalOutcome } from '../core/run/status.js';
import { failed } from '../core/state/change.js';
import type { RunState } from '../core/state/state.js';
import type { WorkInFlight } from '../core/state/status.js';
import { callSummary, failureText, visible } from '../core/state/summaries.js';
import { nodeWorkName } from '../core/state/turn-definition.js';
import { getOutcome, nothingSpent } from '../core/state/turn.js';
import { WORK } from '../core/state/work.js';
import { formatDuration } from '../core/text/text.js';
import type {
  AttemptFailure,
  AttemptReport,
  FailReason,
  Outcome,
} from '../core/transcript/outcome.js';
import { optionalTsToMs } from '../temporal/sdk-internals.js';
import { payloadValue } from '../temporal/server-answers.js';
import { type HistoryEvent, decodeFailure } from './history-event.js';
import { type EndedEvent, type InFlight, type Projection, createProjector } from './projection.js';
import type { RunReading } from './read-run.js';
import {
  NO_ATTEMPTS,
  addFailures,
  attemptFailure,
  attemptedWork,
  reportsOf,
} from './reader/attempts.js';

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
  /** The newest failed attempt; null if none has failed. */
  readonly failure: AttemptFailure | null;
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
  const attempt = raw.attempt ?? 1;
  const failure = raw.lastFailure ? decodeFailure(raw.lastFailure) : null;
  const failedAt = optionalTsToMs(raw.lastAttemptCompleteTime) ?? null;
  const taken = [STARTED, CANCEL_REQUESTED].includes(Number(raw.state));
  const next = optionalTsToMs(raw.nextAttemptScheduleTime) ?? 0;
  return {
    activityId: raw.activityId ?? '',
    attempt,
    startedAt: taken ? (optionalTsToMs(raw.lastStartedTime) ?? null) : null,
    dueAt: Math.max(next, optionalTsToMs(raw.scheduledTime) ?? 0),
    paused: raw.paused ?? false,
    reports: [
      ...reportsIn(raw.heartbeatDetails?.payloads),
      ...causeChain(raw.lastFailure).flatMap(({ applicationFailureInfo }) =>
        reportsIn(applicationFailureInfo?.details?.payloads),
      ),
    ],
    failure: failure && attemptFailure(failure, { attempt: attempt - 1, at: failedAt }),
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
 * Returns what the run is doing at `now`, such as `read_file src/a.ts (3 s, attempt 2, after: no such file)`; null for
 * nothing.
 */
export function currentActivity(
  { view, work }: { readonly view: Projection; readonly work: PendingWork },
  now: number,
): string | null {
  if (view.ended !== null) return null;
  const definition = view.state?.config.definition;
  const each = [...view.inFlight.values()].map(
    (one) =>
      `${nameOf(one, definition)} (${progressOf(one, work.activities.get(one.activityId), now)})`,
  );
  if (each.length > 0) return each.join(', ');
  const inline = work.workflowDueAt === null && view.state !== null ? inlineWork(view.state) : [];
  if (inline.length > 0) return inline.join(', ');
  const waitsMs = now - (work.workflowDueAt ?? now);
  return waitsMs < TAKEN_WITHIN_MS ? null : `waits for a worker (${seconds(waitsMs)})`;
}

/** Returns the calls and the model call that workers have, with their attempts. */
export function workInFlight(
  view: Projection,
  { activities }: PendingWork,
): readonly WorkInFlight[] {
  if (view.ended !== null) return [];
  return [...view.inFlight.values()].flatMap((one): readonly WorkInFlight[] => {
    const on = attemptedWork(one);
    const pending = activities.get(one.activityId);
    if (on === null || pending === undefined) return [];
    const { attempt, startedAt, dueAt, failure, reports } = pending;
    const { attempts, failures } = addFailures(view.retriedWork.get(on) ?? NO_ATTEMPTS, {
      attempts: attempt,
      reports: on === WORK.model ? reports : [],
      failures: failure === null ? [] : [failure],
    });
    const since = Math.floor(one.at);
    return [{ on, since, attempt: attempts, startedAt, dueAt, failures }];
  });
}

/** Returns the calls that the workflow task under way executes itself. */
function inlineWork(state: RunState): readonly string[] {
  if (nextAction(state).type !== 'run-calls') return [];
  return inlineCalls(state).map((call) => `${callSummary(call)} (inline)`);
}

function nameOf(
  { activity, call, summary }: InFlight,
  definition: AgentDefinition | undefined,
): string {
  const model = definition?.model ?? '';
  // The summary of the first step names the model as well.
  if (activity === 'callModel') return visible(`${model}, ${summary.replace(` · ${model}`, '')}`);
  const node = call && nodeWorkName(definition, call);
  if (node !== null) return visible(node);
  if (summary !== '') return visible(summary);
  return call === null ? visible(activity) : callSummary(call);
}

/** Says how long the work has been running, its attempt, and why the last one failed. A model call has reports. */
function progressOf(one: InFlight, pending: PendingActivity | undefined, now: number): string {
  if (pending === undefined) return seconds(now - one.at);
  const text = attemptText(pending, now);
  if (pending.failure === null || one.activity === 'callModel') return text;
  return `${text}, after: ${failureText(pending.failure.message)}`;
}

function attemptText(pending: PendingActivity, now: number): string {
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

/** Whether the workflow tasks that have ended include the end of the run, which then only archives its messages. */
export function hasProcessedEnd({ events }: Pick<RunReading, 'events'>): boolean {
  const projector = createProjector();
  for (const event of events) projector.push(event);
  const { state } = projector.processed();
  return state !== null && finalOutcome(state) !== null;
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
