import type { WorkflowExecutionDescription } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { payloadValue } from '../temporal/server-answers.js';
import { optionalTsToMs } from '../temporal/sdk-internals.js';
import { isObject } from '../core/json.js';
import { isReport } from '../core/guards/recorded.js';
import type { AttemptReport } from '../core/report.js';

type RawActivity = NonNullable<
  NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number]
>;
type RawFailure = NonNullable<RawActivity['lastFailure']>;

/** Temporal's numbers of the states of pending activities and workflow tasks. */
const SCHEDULED = 1;
const STARTED = 2;
const CANCEL_REQUESTED = 3;

/** An activity that has not ended, as the server shows it. All times are Unix time in ms. */
export interface PendingActivity {
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
