import { failed } from '../../core/make-outcome.js';
import { endTurn } from '../../core/change.js';
import { nextAction } from '../../core/next-action.js';
import type { Outcome } from '../../core/outcome.js';
import { inTurn } from '../../core/state.js';
import { callsGivenUp } from './calls.js';
import type { EventOf, ProjectionState } from './state.js';
import { interrupt, tell } from './emit.js';

/** A new activity shows that the engine has drawn its own conclusions meanwhile. */
export function catchUp(
  told: ProjectionState,
  at: number,
  { activity, input }: { activity: string; input: Record<string, unknown> },
): void {
  if (told.state === null) return;
  // A further call may be the same one, scheduled again.
  if (activity === 'callModel') callsGivenUp(told, at);
  if (nextAction(told.state).type === 'await-time') tell(told, { type: 'time-passed', at });
  if (activity !== 'callModel' && activity !== 'retrieveDocuments') return;
  if (nextAction(told.state).type === 'join-messages') tell(told, { type: 'messages-joined', at });
  if (activity === 'retrieveDocuments') return;
  const closing = input['closing'] === true;
  if (
    closing &&
    told.state.turn.closing === null &&
    nextAction(told.state).type !== 'begin-closing'
  ) {
    // Nothing in the state asks for an end, so the time was up: while blocked, or between two events.
    interrupt(told, at);
  }
  const action = nextAction(told.state);
  if (action.type === 'begin-closing') {
    tell(told, { type: 'closing-begun', reason: action.reason, at });
  }
}

/** The workflow wrote down that a turn is over; where the events did not show how, it is told by this. */
export function turnOver(told: ProjectionState, { fields, at }: EventOf<'memo'>): void {
  const { turn, status, reason } = fields;
  if (told.state === null || told.state.turn.number !== turn || !inTurn(told.state)) return;
  callsGivenUp(told, at);
  if (nextAction(told.state).type === 'await-time') tell(told, { type: 'time-passed', at });
  if (status === 'cancelled' || (reason === 'wallMs' && !told.state.turn.deadlineReached)) {
    if (status === 'cancelled' && !told.cancelRequested) told.cancelTurnRequested = true;
    interrupt(told, at);
  }
  const action = nextAction(told.state);
  if (action.type === 'begin-closing' || action.type === 'end-at-limit') {
    tell(told, { type: 'limit-ended', reason: action.reason });
  }
  if (told.state.turn.outcome === null) {
    const message = 'the run ended this turn; its history does not tell why';
    const body = failed(told.state, { reason: 'error', message });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
    told.state = endTurn(told.state, { ...body, status, reason } as Outcome);
  }
}

/** What the loop does at once by itself after whatever has happened: it ends turns and begins them. */
export function windUp(told: ProjectionState, at: number): void {
  for (;;) {
    if (told.state === null || told.ended !== null) return;
    // What it takes over from another run comes before its first turn.
    if (told.input?.fork !== undefined && told.state.forkedFrom === undefined) return;
    const action = nextAction(told.state);
    if (action.type === 'record-turn') {
      told.turns.push({ turn: told.state.turn.number, outcome: action.outcome });
      told.cancelTurnRequested = false;
      told.blocked.clear();
      tell(told, { type: 'turn-recorded', at });
    } else if (action.type === 'begin-turn') tell(told, { type: 'turn-begun', at });
    else return;
  }
}
