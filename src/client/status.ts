import { needsPerson } from '../core/blocked.js';
import {
  decidedByPeople,
  type Pending,
  type RunStatus,
  type RunStatusName,
} from '../core/status.js';
import { isObject, textField } from '../core/json.js';
import { nextAction } from '../core/next-action.js';
import { safetyPending } from '../core/calls/safety.js';
import { nothingSpent } from '../core/state.js';
import { currentActivity } from '../history/current-activity.js';
import { endOfRun } from '../history/end-of-run.js';
import { pendingWork } from '../history/pending-work.js';
import { failedAttempts } from '../history/attempt-reports.js';
import type { RunReading } from '../history/read-run.js';

/**
 * What query `status` would answer, made from description and history: it needs no worker, and it
 * answers for runs that cannot be asked any more. `now`: Unix time in ms.
 */
export function toRunStatus(run: RunReading, now: number): RunStatus {
  const { id, runId, view, events } = run;
  const { state } = view;
  const end = endOfRun(run);
  const [blocked] = view.blocked.values();
  const work = pendingWork(run.description);
  const cancelling = view.cancelRequested && end === null;
  return {
    id,
    runId,
    agent: state?.config.definition.name ?? run.agent,
    status: statusName(run),
    reason: end?.reason ?? blocked?.reason ?? state?.turn.outcome?.reason ?? null,
    message:
      end?.outcome.error ?? blocked?.message ?? (cancelling ? 'a cancel is asked for' : null),
    turn: state?.turn.number ?? 0,
    step: state?.turn.spent.steps ?? 0,
    segments: state?.segments ?? 1,
    queued: state?.inbox.waiting.length ?? 0,
    limits: state?.config.limits ?? { turn: {}, run: {} },
    usage: (state?.total ?? nothingSpent(null)).usage,
    pending: pendingOf(run),
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

/** The calls that only a person can settle. */
function pendingOf({ id, view, events }: RunReading): readonly Pending[] {
  return [...view.blocked]
    .filter(([, { reason }]) => needsPerson(reason))
    .flatMap(([callId, { reason }]) => {
      const call = view.state?.turn.batch?.calls.find((asked) => asked.id === callId);
      if (call === undefined) return [];
      if (reason === 'safety_check') return safetyPending(call, id);
      return {
        type: 'outcome_unknown',
        call: callId,
        tool: call.name,
        arguments: call.arguments,
        idempotencyKey: keyOf(events, callId),
        cure: `perdure resolve ${id} ${callId} --as happened|retry|abandon [--result JSON]`,
      } as const;
    });
}

/** The key under which the call went to its destination: what a person looks it up by. */
function keyOf(events: RunReading['events'], callId: string): string {
  const scheduled = events.findLast(
    (event) =>
      event.type === 'scheduled' &&
      isObject(event.input) &&
      isObject(event.input['call']) &&
      event.input['call']['id'] === callId,
  );
  return scheduled?.type === 'scheduled' && isObject(scheduled.input)
    ? textField(scheduled.input, 'key')
    : '';
}
