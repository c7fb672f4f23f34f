import { formatDuration } from '../text/duration.js';
import { deniedCall } from '../calls/call-result.js';
import type { RecordedDecision } from '../decisions.js';
import type { RunEvent } from '../events.js';
import { askingWork } from '../requests/open-requests.js';
import { type AskingWork, UNDO, callOfWork, isUndo } from '../work/work.js';
import type { RunState } from '../state.js';
import { finishCall } from './calls.js';
import { getInterruption } from '../work/interruption.js';
import { nextDeadline } from '../limits.js';
import { inTurn } from '../turn.js';

/** Returns the events of a deadline that has passed at `now` (Unix time in ms). */
export function passedDeadline(state: RunState, now: number): readonly RunEvent[] {
  return [...expired(state, now), ...passedLimit(state, now)];
}

function passedLimit(state: RunState, now: number): readonly RunEvent[] {
  const deadline = nextDeadline(state);
  if (deadline === null || deadline.at > now) return [];
  const isOfRun = deadline.of === 'run';
  // The interruption of a turn's deadline is requested once, and applied when its work has stopped.
  if (!isOfRun && getInterruption(state) !== null) return [];
  return [
    ...(isOfRun ? [{ type: 'end-requested', by: 'wallMs' } as const] : []),
    ...(inTurn(state) ? [{ type: 'interruption-requested', by: 'wallMs' } as const] : []),
  ];
}

/** Returns the events of the requests that have expired at `at` (Unix time in ms). */
function expired(state: RunState, at: number): readonly RunEvent[] {
  // A decision that arrived in time and is still being checked counts.
  const waiting = askingWork(state).filter(({ proposal }) => proposal === undefined);
  return waiting.flatMap((work) => expireIfDue(state, work, at));
}

/**
 * Returns the events of a request that has expired at `at` (Unix time in ms); none if it has not.
 */
export function expireIfDue(state: RunState, work: AskingWork, at: number): readonly RunEvent[] {
  const { request, name } = work;
  if (request.expiresAt === undefined || request.expiresAt > at) return [];
  const decision: RecordedDecision = {
    what: 'resolve',
    id: '',
    at,
    request: request.id,
    ...(request.kind !== 'limit' && { call: name }),
    as: 'expired',
  };
  return [...afterExpiry(state, work, at), { type: 'decision-recorded', decision }];
}

function afterExpiry(state: RunState, work: AskingWork, at: number): readonly RunEvent[] {
  const { name, request } = work;
  const over: RunEvent = { type: 'work-ended', name };
  if (request.kind === 'limit') return [over, { type: 'limit-kept' }];
  const why = `no decision within ${formatDuration((request.expiresAt ?? at) - request.raisedAt, { as: 'exact' })}`;
  if (isUndo(work)) {
    const call = name.slice(UNDO.length);
    return [over, { type: 'undo-changed', call, state: 'denied', message: why }];
  }
  const call = callOfWork(state, name);
  return call === undefined ? [over] : finishCall({ ...deniedCall(call, why), expired: true }, at);
}
