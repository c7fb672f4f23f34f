import { decidedByPeople, type RunStatus, type RunStatusName } from '../core/status.js';
import { nextAction } from '../core/next-action.js';
import { nothingSpent } from '../core/state.js';
import { pendingDecisions } from '../core/work/pending.js';
import { currentActivity } from '../history/current-activity.js';
import { endOfRun } from '../history/end-of-run.js';
import { pendingWork } from '../history/pending-work.js';
import { failedAttempts } from '../history/attempt-reports.js';
import type { RunReading } from '../history/read-run.js';

/**
 * Returns what the query `status` would return, from the description and the history. So it needs no
 * worker, and it also works for runs that have ended. `now`: Unix time in ms.
 */
export function toRunStatus(run: RunReading, now: number): RunStatus {
  const { id, runId, view, events } = run;
  const { state } = view;
  const end = endOfRun(run);
  const [blocked] = view.blocked.values();
  const work = pendingWork(run.description);
  const isCancelling = view.cancelRequested && end === null;
  return {
    id,
    runId,
    historyLength: view.lastEvent,
    agent: state?.config.definition.name ?? run.agent,
    status: statusName(run),
    reason: end?.reason ?? blocked?.reason ?? state?.turn.outcome?.reason ?? null,
    message:
      end?.outcome.error ?? blocked?.message ?? (isCancelling ? 'a cancel is requested' : null),
    turn: state?.turn.number ?? 0,
    step: state?.turn.spent.steps ?? 0,
    segments: state?.segments ?? 1,
    queued: state?.inbox.waiting.length ?? 0,
    limits: state?.config.limits ?? { turn: {}, run: {} },
    usage: (state?.total ?? nothingSpent(null)).usage,
    pending: state === null ? [] : pendingDecisions(state, id),
    doing: currentActivity({ view, work }, now),
    reports: failedAttempts(events, work),
    outcome: end?.outcome ?? state?.turn.outcome ?? null,
    ...(state?.forkedFrom && { forkedFrom: state.forkedFrom }),
    ...(state?.config.definition.mcp?.left && { left: state.config.definition.mcp.left }),
    ...(state && decidedByPeople(state)),
  };
}

function statusName(run: RunReading): RunStatusName {
  const { description, view } = run;
  if (endOfRun(run) !== null) return 'done';
  if (description.status.name === 'PAUSED') return 'paused';
  if (view.blocked.size > 0) return 'blocked';
  if (view.state === null) return 'working';
  if (view.state.paused) return 'paused';
  if (view.inFlight.size > 0) return 'working';
  const { type } = nextAction(view.state);
  if (type === 'await-message') return 'waiting_message';
  return type === 'await-time' ? 'waiting_time' : 'working';
}
