import { isOpenStatus, type RunStatus } from '../core/status.js';
import { finalOutcome, runStatus, type StateStatus } from '../core/run-status.js';
import { nothingSpent } from '../core/turn.js';
import { currentActivity } from '../history/current-activity.js';
import { endOfRun } from '../history/end-of-run.js';
import { pendingWork, type PendingWork } from '../history/pending-work.js';
import { failedAttempts } from '../history/attempt-reports.js';
import type { RunReading } from '../history/read-run.js';

/**
 * Returns what the query `status` would return, computed from the description and the history. It
 * needs no worker, and it also works for runs that have ended. `now` is the Unix time in ms.
 */
export function toRunStatus(run: RunReading, now: number): RunStatus {
  const { id, runId, view, events, description } = run;
  const end = endOfRun(run);
  const status: StateStatus =
    view.state === null
      ? notBegun(run)
      : runStatus(view.state, { ended: end?.outcome ?? finalOutcome(view.state), run: id });
  const work = pendingWork(description);
  const common = {
    ...status,
    id,
    runId,
    historyLength: view.lastEvent,
    reports: failedAttempts(events, work),
  };
  if (description === null) return { ...common, ...archivedStatus(run, status) };
  const isCancelling = view.cancelRequested && end === null;
  const isHeld = description.status.name === 'PAUSED' && end === null;
  return {
    ...common,
    ...(end !== null && { status: end.outcome.status, reason: end.reason }),
    ...(isHeld && { status: 'paused' }),
    message:
      stuckMessage(work) ?? status.message ?? (isCancelling ? 'a cancel is requested' : null),
    doing: currentActivity({ view, work }, now),
  };
}

/** Failures after which a worker that was merely killed is no longer the likely cause. */
const STUCK_FAILURES = 2;

/** Returns why a run does not go on although workers poll, or null. It loses nothing meanwhile. */
function stuckMessage({ workflowFailures: failures }: PendingWork): string | null {
  if (failures < STUCK_FAILURES) return null;
  return `workers cannot continue the run (${failures} failures in a row): their logs and the run's history say why; if another version of perdure ran it, start a worker of that version`;
}

/** Returns the status of a deleted run, which has ended whether or not the archive has its end. */
function archivedStatus(
  { events }: RunReading,
  { status, outcome, reason, message }: StateStatus,
): Pick<RunStatus, 'status' | 'reason' | 'message' | 'pending' | 'doing' | 'outcome' | 'archived'> {
  const at = events.at(-1)?.at ?? 0;
  const isWhole = !isOpenStatus(status);
  return {
    status: isWhole ? status : 'unknown',
    reason: isWhole ? reason : 'unknown',
    message: isWhole
      ? message
      : 'the server has deleted the run, and the archive does not have its end',
    pending: [],
    doing: null,
    outcome: isWhole ? outcome : null,
    archived: { at, ended: isWhole },
  };
}

/** The status of a run that no worker has started. */
function notBegun(run: RunReading): StateStatus {
  const end = endOfRun(run);
  return {
    agent: run.agent,
    status: 'working',
    reason: null,
    message: end?.outcome.error ?? null,
    turn: 0,
    step: 0,
    segments: 1,
    queued: 0,
    limits: { turn: {}, run: {} },
    usage: nothingSpent(null).usage,
    pending: [],
    outcome: end?.outcome ?? null,
  };
}
