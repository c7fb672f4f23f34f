import type { WorkflowExecutionDescription } from '@temporalio/client';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { optionalTsToMs } from '@temporalio/common/lib/time.js';
import { isObject } from '../core/json.js';
import { isReport } from '../core/guards/recorded.js';
import type { AttemptReport } from '../core/report.js';

type RawActivity = NonNullable<
  NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number]
>;
type RawFailure = NonNullable<RawActivity['lastFailure']>;

/** As Temporal's API numbers the states of pending activities and workflow tasks. */
const SCHEDULED = 1;
const STARTED = 2;
const CANCEL_REQUESTED = 3;

/** An activity that has not ended, as the server sees it; all times are Unix time in ms. */
export interface PendingActivity {
  readonly activityId: string;
  /** From 1. */
  readonly attempt: number;
  /** When a worker took this attempt up; null while none has. */
  readonly startedAt: number | null;
  /** When this attempt could be taken up: in the future while the server waits before trying again. */
  readonly dueAt: number;
  /** By an operator. */
  readonly paused: boolean;
  /** What its failed attempts have left behind. */
  readonly reports: readonly AttemptReport[];
}

/** What a run waits for. */
export interface PendingWork {
  /** By activity id. */
  readonly activities: ReadonlyMap<string, PendingActivity>;
  /** Since when the workflow itself waits for a worker; null when it does not. Unix time in ms. */
  readonly workflowDueAt: number | null;
}

export function pendingWork({ raw }: WorkflowExecutionDescription): PendingWork {
  const activities = (raw.pendingActivities ?? []).map(readActivity);
  const task = raw.pendingWorkflowTask;
  return {
    activities: new Map(activities.map((activity) => [activity.activityId, activity])),
    workflowDueAt:
      Number(task?.state) === SCHEDULED ? (optionalTsToMs(task?.scheduledTime) ?? null) : null,
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
      ...failures(raw.lastFailure).flatMap(({ applicationFailureInfo }) =>
        reportsIn(applicationFailureInfo?.details?.payloads),
      ),
    ],
  };
}

/** A timeout carries the failure of the attempt before as its cause. */
function failures(failure: RawFailure | null | undefined): readonly RawFailure[] {
  return failure ? [failure, ...failures(failure.cause)] : [];
}

function reportsIn(payloads: readonly Payload[] | null | undefined): readonly AttemptReport[] {
  return (payloads ?? []).flatMap((payload) => {
    try {
      return reportsOf(defaultPayloadConverter.fromPayload(payload));
    } catch {
      return [];
    }
  });
}

/** The reports in what an activity recorded; none where it recorded something else. */
export function reportsOf(recorded: unknown): readonly AttemptReport[] {
  const reports: unknown = isObject(recorded) ? recorded['reports'] : null;
  return Array.isArray(reports) ? reports.filter(isReport) : [];
}
