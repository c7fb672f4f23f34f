import type {
  ScheduleDescription,
  ScheduleExecutionResult,
  ScheduleSummary,
} from '@temporalio/client';
import { isObject, textField } from '../../core/json.js';
import { overlapOf, type Overlap, type ScheduleTimes } from './options.js';

/** A schedule as a list shows it. All times are ISO 8601. */
export interface ScheduleRow extends ScheduleTimes {
  readonly id: string;
  /** Null for one that only sends to a run that is there. */
  readonly agent: string | null;
  /** The open run that gets the message; null where each firing is a run of its own. */
  readonly to: string | null;
  readonly paused: boolean;
  /** Why it was paused or not, if somebody said so. */
  readonly note: string | null;
  /** When it fires next; some seconds behind, as the server lists it. */
  readonly nextAt: readonly string[];
  /** The newest firings, oldest first. */
  readonly recent: readonly Firing[];
}

export interface Firing {
  /** Of the run; with `to`, of the workflow that sent the message, and so of the message. */
  readonly id: string;
  /** When it was due. */
  readonly dueAt: string;
  /** When it was done. */
  readonly firedAt: string;
}

export interface ScheduleDetails extends ScheduleRow {
  readonly message: string;
  readonly overlap: Overlap | 'terminateOther';
  /** Ids of firings that are under way; those that were let through by `allowAll` are not among them. */
  readonly running: readonly string[];
  readonly fired: number;
  /** Not fired, because the one before was under way. */
  readonly skipped: number;
  /** Not fired, because the server was down for longer than may be made up for. */
  readonly missed: number;
}

/** What a schedule of ours keeps in its memo: a list has nothing else of it. */
export interface ScheduleMemo extends ScheduleTimes {
  readonly agent: string | null;
  readonly to: string | null;
}

export const MEMO_KEY = 'perdure';

/** Null for a schedule that is not ours. */
export function scheduleRow(summary: ScheduleSummary | ScheduleDescription): ScheduleRow | null {
  const memo: unknown = summary.memo?.[MEMO_KEY];
  if (!isObject(memo)) return null;
  const { scheduleId: id, state, info } = summary;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by `create`
  const kept = memo as unknown as ScheduleMemo;
  return {
    id,
    ...kept,
    paused: state.paused,
    note: state.note === undefined || state.note === '' ? null : state.note,
    nextAt: info.nextActionTimes.map((time) => time.toISOString()),
    recent: info.recentActions.map(firing),
  };
}

/** Null for a schedule that is not ours. */
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
