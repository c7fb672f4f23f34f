import type { Payload } from '@temporalio/common';
import type { SegmentFacts } from '../core/run/carry.js';
import type { Failure } from '../core/run/events.js';
import type { SegmentStart } from '../core/segments/start.js';
import { historyProto } from '../temporal/sdk-internals.js';
import { type History, payloadValue } from '../temporal/server-answers.js';

export type { History };
/** An event, as returned by Temporal's API. */
export type RawEvent = NonNullable<History['events']>[number];
/** An update as its sender sent it. */
export interface UpdateRequest {
  readonly name: string;
  readonly input: unknown;
}

/** A decoded event, as far as projecting a run needs it. `at`: Unix time in ms, by the server. */
export type HistoryEvent = { readonly id: number; readonly at: number } & (
  | {
      readonly type: 'started';
      readonly workflowType: string;
      readonly input: unknown;
      /** The second argument: what the previous segment carried over; null if there is none. */
      readonly carried: unknown;
      /** Run id of the previous segment; empty in the first one. */
      readonly previousRunId: string;
      readonly firstRunId: string;
      /** Workflow id of the root of all callers; the run's own id if no run calls it. */
      readonly root: string;
      readonly start: SegmentStart;
    }
  | {
      readonly type: 'local';
      readonly activity: string;
      /** Unix time in ms, by the worker. */
      readonly completedAt: number;
      readonly result: unknown;
      /** Absent if it did not fail. */
      readonly failure?: Failure;
    }
  | {
      readonly type: 'scheduled';
      readonly activity: string;
      /** The id under which the server lists the activity while it is pending. */
      readonly activityId: string;
      readonly input: unknown;
      readonly summary: string;
    }
  /**
   * An activity began for the last time; `attempt`, from 1. The server records it with the end.
   * `failure`: that of the attempt before; absent if there was none.
   */
  | {
      readonly type: 'attempted';
      readonly scheduled: number;
      readonly attempt: number;
      readonly failure?: Failure;
    }
  | { readonly type: 'completed'; readonly scheduled: number; readonly result: unknown }
  | { readonly type: 'failed'; readonly scheduled: number; readonly failure: Failure }
  | {
      readonly type: 'cancelled';
      readonly scheduled: number;
      readonly details: readonly unknown[];
    }
  /** The workflow requested the cancellation of an activity. It may not wait for the activity. */
  | { readonly type: 'activity-cancel-requested'; readonly scheduled: number }
  /**
   * The workflow accepted an update. `request`: null if the server recorded the request before, in
   * an `update-admitted`, as it does with the updates that it sends again after a reset.
   */
  | {
      readonly type: 'update';
      readonly updateId: string;
      readonly request: UpdateRequest | null;
    }
  | {
      readonly type: 'update-admitted';
      readonly updateId: string;
      readonly request: UpdateRequest;
    }
  /** The server recorded a signal, which needs no worker. */
  | { readonly type: 'signal'; readonly name: string; readonly input: unknown }
  /** The workflow changed its memo, as it does at the end of a turn. */
  | { readonly type: 'memo'; readonly fields: Readonly<Record<string, unknown>> }
  /** The workflow has called an agent, whose run is yet to begin. */
  | { readonly type: 'child-started'; readonly call: string; readonly child: string }
  /** The server has begun the run of a called agent. */
  | { readonly type: 'child-began'; readonly child: string; readonly runId: string }
  /** The server already has a run with this id. The caller follows it, or starts it again. */
  | { readonly type: 'child-existed'; readonly call: string }
  | {
      readonly type: 'child-ended';
      /** The id of the call that started the child. */
      readonly call: string;
      readonly cancelled: boolean;
      /** Its outcome, regardless of how it ended; null if it left none. */
      readonly result: unknown;
      readonly message: string;
    }
  /**
   * `by`: the person who requested it, as given to perdure; absent for other programs. `from`: the run or the
   * client that has; absent if unknown.
   */
  | { readonly type: 'cancel-requested'; readonly by?: string; readonly from?: string }
  | { readonly type: 'timer-fired' }
  | {
      readonly type: 'ended';
      readonly how: EndedHow;
      readonly result: unknown;
      readonly failure?: Failure;
      /** The state for the next segment, if there is one. */
      readonly carried?: unknown;
    }
  /**
   * A worker starts and completes a workflow task, in which the workflow processes new events. The
   * server shows the first two events before the history contains them. If the task fails, it
   * leaves no such events, and other events get their ids; only a later event confirms them.
   */
  | { readonly type: 'task-scheduled' }
  | { readonly type: 'task-started'; readonly segment: SegmentFacts }
  | { readonly type: 'task-completed' }
  /** The workflow has adopted a change of its code, in the task before this event. */
  | { readonly type: 'patched'; readonly patch: string }
  /** A command of the workflow that does not change the projection. */
  | { readonly type: 'command' }
  | { readonly type: 'other' }
);

type EndedHow = 'completed' | 'failed' | 'cancelled' | 'terminated' | 'timed_out' | 'continued';

/** A history event without the fields that all events share. */
export type EventBody<E = HistoryEvent> = E extends HistoryEvent ? Omit<E, 'id' | 'at'> : never;

/**
 * Returns whether an event is permanent, even at the end of a history: no other event can take its
 * id.
 */
export function isPermanent({ type }: HistoryEvent): boolean {
  return type !== 'task-scheduled' && type !== 'task-started';
}

type RawFailure = NonNullable<
  NonNullable<RawEvent['activityTaskFailedEventAttributes']>['failure']
>;

/**
 * Returns the failure of an activity or of a called run as the workflow sees it. What it was caused by
 * does not count: the SDK does not even tell a workflow of the failed attempt before a timeout.
 */
export function decodeFailure(failure: RawFailure | null | undefined): Failure {
  const timedOut = Boolean(failure?.timeoutFailureInfo);
  const details = decodeAll(failure?.applicationFailureInfo?.details?.payloads);
  const type = failure?.applicationFailureInfo?.type ?? '';
  return { message: failure?.message ?? '', type, timedOut, details };
}

/** Returns the innermost failure with which a run has ended, since that names the cause. */
export function decodeEndFailure(failure: RawFailure | null | undefined): Failure {
  let inner = failure;
  while (inner?.cause && !inner.applicationFailureInfo) inner = inner.cause;
  return decodeFailure(inner);
}

export function decodeFields(fields: Record<string, Payload>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, payloadValue(value)]),
  );
}

export function decodeFirst(payloads: readonly Payload[] | null | undefined): unknown {
  return payloadValue(payloads?.[0]);
}

export function decodeAll(payloads: readonly Payload[] | null | undefined): readonly unknown[] {
  return (payloads ?? []).map(payloadValue);
}

// A newer server or SDK may have written fields that this version does not know.
const READ_OPTIONS = { ignoreUnknownFields: true };

/**
 * Parses a history as `historyToJson` and Temporal's tools write it. Throws if it is not a history.
 */
export function historyFromJson(json: { readonly events: readonly unknown[] }): History {
  const { protoJson, type } = historyProto();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that is what `type` describes
  return protoJson.fromJson(type, json, READ_OPTIONS) as History;
}

/** Writes a history as JSON text that Temporal's tools can read. */
export function historyToJson(history: History): string {
  const { protoJson, type } = historyProto();
  return JSON.stringify(protoJson.toJson(type, type.fromObject(history)), null, 2);
}
