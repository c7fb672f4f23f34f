import type {
  ScheduleDescription,
  ScheduleExecutionResult,
  ScheduleSummary,
} from '@temporalio/client';
import { isObject, textField } from '../../core/json.js';
import { overlapOf, type Overlap, type ScheduleTimes } from './options.js';

/** A schedule in a list. All times are ISO 8601. */
export interface ScheduleRow extends ScheduleTimes {
  readonly id: string;
  /** Null for a schedule that only sends to an existing run. */
  readonly agent: string | null;
  /** The open run that gets the messages; null if each firing is a run of its own. */
  readonly to: string | null;
  readonly paused: boolean;
  /** The reason given for pausing or unpausing it; null if none was given. */
  readonly note: string | null;
  /** Its next firings. The server's list lags by some seconds. */
  readonly nextAt: readonly string[];
  /** The newest firings, oldest first. */
  readonly recent: readonly Firing[];
}

export interface Firing {
  /** The id of the run; with `to`, of the workflow that sent the message, and of the message. */
  readonly id: string;
  /** When it was due. */
  readonly dueAt: string;
  /** When it fired. */
  readonly firedAt: string;
}

export interface ScheduleDetails extends ScheduleRow {
  readonly message: string;
  readonly overlap: Overlap | 'terminateOther';
  /** Ids of firings that have not ended, except those that `allowAll` let through. */
  readonly running: readonly string[];
  readonly fired: number;
  /** Firings skipped because the previous one had not ended. */
  readonly skipped: number;
  /** Firings missed because the server was down for longer than `catchUpMs`. */
  readonly missed: number;
}

/** What perdure writes into the memo of a schedule. A list has no other details. */
export interface ScheduleMemo extends ScheduleTimes {
  readonly agent: string | null;
  readonly to: string | null;
}

export const MEMO_KEY = 'perdure';

/** Returns null for a schedule that perdure did not create. */
export function scheduleRow(summary: ScheduleSummary | ScheduleDescription): ScheduleRow | null {
  const memo: unknown = summary.memo?.[MEMO_KEY];
  if (!isObject(memo)) return null;
  const { scheduleId: id, state, info } = summary;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by `create`
  const details = memo as unknown as ScheduleMemo;
  return {
    id,
    ...details,
    paused: state.paused,
    note: state.note === undefined || state.note === '' ? null : state.note,
    nextAt: info.nextActionTimes.map((time) => time.toISOString()),
    recent: info.recentActions.map(firing),
  };
}

/** Returns null for a schedule that perdure did not create. */
export function scheduleDetails(description: ScheduleDescription): ScheduleDetails | null {
  const row = scheduleRow(description);
  if (row === null) return null;
  const { action, policies, info } = description;
  const [input]: readonly unknown[] = action.args ?? [];
  return {
    ...row,
    message: isObject(input) ? textField(input, 'message') : '',
    overlap: overlapOf(policies.overlap),
    running: info.runningActions.map(({ workflow }) => workflow.workflowId),
    fired: info.numActionsTaken,
    skipped: info.numActionsSkippedOverlap,
    missed: info.numActionsMissedCatchupWindow,
  };
}

function firing({ action, scheduledAt, takenAt }: ScheduleExecutionResult): Firing {
  return {
    id: action.workflow.workflowId,
    dueAt: scheduledAt.toISOString(),
    firedAt: takenAt.toISOString(),
  };
}
