import { failed } from '../../core/make-outcome.js';
import { endTurn } from '../../core/change.js';
import { nextAction } from '../../core/next-action.js';
import type { Outcome } from '../../core/outcome.js';
import { inTurn } from '../../core/state.js';
import { abandonCalls } from './calls.js';
import type { EventOf, ProjectionState } from './state.js';
import { interrupt, emit } from './emit.js';

/** Applies the steps of the loop that a newly scheduled activity implies. */
export function catchUp(
  projection: ProjectionState,
  at: number,
  { activity, input }: { activity: string; input: Record<string, unknown> },
): void {
  if (projection.state === null) return;
  // A further call may be the same one, scheduled again.
  if (activity === 'callModel') abandonCalls(projection, at);
  if (nextAction(projection.state).type === 'await-time')
    emit(projection, { type: 'time-passed', at });
  if (activity !== 'callModel' && activity !== 'retrieveDocuments') return;
  if (nextAction(projection.state).type === 'join-messages')
    emit(projection, { type: 'messages-joined', at });
  if (activity === 'retrieveDocuments') return;
  const closing = input['closing'] === true;
  if (
    closing &&
    projection.state.turn.closing === null &&
    nextAction(projection.state).type !== 'begin-closing'
  ) {
    // Nothing in the state requires an end, so the time was up: while blocked, or between two events.
    interrupt(projection, at);
  }
  const action = nextAction(projection.state);
  if (action.type === 'begin-closing') {
    emit(projection, { type: 'closing-begun', reason: action.reason, at });
  }
}

/** The workflow recorded in the memo that a turn is over. Ends the turn if the events did not. */
export function turnEnded(projection: ProjectionState, { fields, at }: EventOf<'memo'>): void {
  const { turn, status, reason } = fields;
  if (
    projection.state === null ||
    projection.state.turn.number !== turn ||
    !inTurn(projection.state)
  )
    return;
  abandonCalls(projection, at);
  if (nextAction(projection.state).type === 'await-time')
    emit(projection, { type: 'time-passed', at });
  if (status === 'cancelled' || (reason === 'wallMs' && !projection.state.turn.deadlineReached)) {
    if (status === 'cancelled' && !projection.cancelRequested)
      projection.cancelTurnRequested = true;
    interrupt(projection, at);
  }
  const action = nextAction(projection.state);
  if (action.type === 'begin-closing' || action.type === 'end-at-limit') {
    emit(projection, { type: 'limit-ended', reason: action.reason });
  }
  if (projection.state.turn.outcome === null) {
    const message = 'the run ended this turn; its history does not show why';
    const body = failed(projection.state, { reason: 'error', message });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
    projection.state = endTurn(projection.state, { ...body, status, reason } as Outcome);
  }
}

/** Ends and begins turns, as the loop does after every event. */
export function advanceTurns(projection: ProjectionState, at: number): void {
  for (;;) {
    if (projection.state === null || projection.ended !== null) return;
    // The messages of the forked run come before the first turn.
    if (projection.input?.fork !== undefined && projection.state.forkedFrom === undefined) return;
    const action = nextAction(projection.state);
    if (action.type === 'record-turn') {
      projection.turns.push({ turn: projection.state.turn.number, outcome: action.outcome });
      projection.cancelTurnRequested = false;
      projection.blocked.clear();
      emit(projection, { type: 'turn-recorded', at });
    } else if (action.type === 'begin-turn') emit(projection, { type: 'turn-begun', at });
    else return;
  }
}
