import { condition, currentUpdateInfo, setHandler } from '@temporalio/workflow';
import { askProblem, askRefusal, receive, receiveSignal } from '../core/ask.js';
import type { Ask, AskReceipt } from '../core/inbox.js';
import { checkLimits, show } from '../core/input/input.js';
import { isObject } from '../core/json.js';
import type { Limits } from '../core/definition/definition.js';
import { apply } from '../core/loop.js';
import { inTurn, type RunState } from '../core/state.js';
import { isLoaded } from '../core/definition/initial-config.js';
import { startClock } from './deadline-timer.js';
import { claimProblem, deciding, recordDecision } from './decide.js';
import {
  askUpdate,
  cancelTurnUpdate,
  closeUpdate,
  messageSignal,
  outcomeUpdate,
  pauseUpdate,
  setLimitsUpdate,
  type Claim,
  type TurnOutcome,
} from './messages.js';
import { refusal } from './problem.js';
import { interrupt, type Session } from './run-context.js';

/** Each waiter takes one of the ten updates that may be in flight; the others stay free for messages. */
const WAITERS = 4;

/**
 * Takes messages that the server has recorded, which may hold anything. To be called before any other
 * handler is set: what came before the run began is handed over as handlers are set, and the history,
 * and so every reader of it, has signals before updates.
 */
export function takeRecorded(session: Session): void {
  setHandler(messageSignal, (ask) => {
    const event = receiveSignal(session.state, ask, Date.now());
    if (event !== null) apply(session, event);
  });
}

/** Takes messages and control. No handler waits for an activity, so none holds a segment open. */
export function takeMessages(session: Session): void {
  setHandler(askUpdate, (ask) => take(session, ask), {
    validator: (ask) => refuse(askProblem(ask) ?? askRefusal(session.state, ask, idOf(ask))),
  });
  setHandler(outcomeUpdate, (wanted) => outcomeOf(session, wanted.turn), {
    validator: (wanted) => refuse(refuseWait(session, wanted)),
  });
  setHandler(cancelTurnUpdate, (wanted) => cancelTurn(session, wanted), {
    validator: (wanted) => refuse(refuseCancel(session, wanted)),
  });
  setHandler(pauseUpdate, (claim) => pause(session, claim), {
    validator: (claim) => refuse(claimProblem(claim) ?? ended(session.state)),
  });
  setHandler(setLimitsUpdate, (limits) => setLimits(session, limits), {
    validator: (limits) => refuse(refuseLimits(session.state, limits)),
  });
  setHandler(closeUpdate, (claim) => close(session, claim), {
    validator: (claim) =>
      refuse(claimProblem(claim) ?? (session.state.open ? null : 'this run ends by itself')),
  });
}

/** Sent again, after the run has gone on to its next turn, it names the turn that it has canceled. */
function cancelTurn(session: Session, claim: Claim): { readonly cancelled: number } {
  const update = deciding(session);
  const { number: turn } = session.state.turn;
  if (update.before !== undefined) return { cancelled: update.before.turn ?? turn };
  interrupt(session, 'cancelTurn');
  recordDecision(session, update, { what: 'cancelTurn', turn, claim });
  return { cancelled: turn };
}

function pause(session: Session, claim: Claim | undefined): { readonly paused: true } {
  const update = deciding(session);
  if (update.before === undefined) {
    apply(session, { type: 'paused', paused: true });
    recordDecision(session, update, { what: 'pause', claim });
    session.changed();
  }
  return { paused: true };
}

function close(session: Session, claim: Claim | undefined): { readonly closing: true } {
  const update = deciding(session);
  if (update.before === undefined) {
    apply(session, { type: 'ending', by: 'closed' });
    recordDecision(session, update, { what: 'close', claim });
  }
  return { closing: true };
}

function refuse(problem: string | null): void {
  if (problem !== null) throw refusal(problem);
}

function take(session: Session, ask: Ask): AskReceipt {
  const { receipt, event } = receive(session.state, ask, idOf(ask));
  if (event !== null) apply(session, event);
  return receipt;
}

/** A message without an id of its own has that of the update; sent again, it is the same message. */
function idOf({ id }: Ask): string {
  return id ?? currentUpdateInfo()?.id ?? '';
}

async function outcomeOf(session: Session, turn: number): Promise<TurnOutcome> {
  const found = (): TurnOutcome | undefined => {
    if (session.state.turn.number === turn && session.state.turn.outcome !== null) {
      return session.state.turn.outcome;
    }
    return session.state.recent.find((over) => over.turn === turn)?.outcome;
  };
  session.waiters += 1;
  try {
    await condition(() => found() !== undefined || session.leaving || session.ended !== null);
  } finally {
    session.waiters -= 1;
  }
  return found() ?? session.ended ?? { pending: true };
}

function refuseCancel(session: Session, wanted: unknown): string | null {
  const { state } = session;
  const problem = claimProblem(wanted);
  if (problem !== null) return problem;
  if (deciding(session).before !== undefined) return null;
  if (!state.open) return 'this run ends with its turn: cancel the run itself';
  if (!inTurn(state)) return 'no turn is under way';
  const turn = isObject(wanted) ? wanted['turn'] : undefined;
  if (turn === undefined || turn === state.turn.number) return null;
  return `turn: ${show(turn)} is not under way; it is turn ${state.turn.number}`;
}

function refuseWait({ state, waiters }: Session, wanted: unknown): string | null {
  const turn = isObject(wanted) ? wanted['turn'] : undefined;
  if (!Number.isInteger(turn) || Number(turn) < 1) {
    return `outcome takes {"turn": number}, ${show(turn)} is none`;
  }
  const last = Math.max(state.turn.number, state.inbox.lastTurn);
  if (Number(turn) > last) return `turn: there is no turn ${String(turn)}; the last one is ${last}`;
  const known =
    state.recent.some((over) => over.turn === turn) || Number(turn) >= state.turn.number;
  if (!known) return `turn: ${String(turn)} is long over; read the run's transcript`;
  return waiters < WAITERS ? null : `${WAITERS} wait already; follow the run's history instead`;
}

/** Waits for the agent where that is still being loaded: only then its price and limits are known. */
async function setLimits(
  session: Session,
  { by, ...limits }: Limits & Claim,
): Promise<RunState['config']['limits']> {
  const update = deciding(session);
  if (!isLoaded(session.state)) {
    const over = (): boolean => session.leaving || session.ended !== null;
    await condition(() => isLoaded(session.state) || over());
    if (!isLoaded(session.state)) refuse('the agent is not loaded; set them when it is');
    refuse(refuseLimits(session.state, limits));
  }
  if (update.before !== undefined) return session.state.config.limits;
  apply(session, { type: 'limits-set', limits });
  recordDecision(session, update, {
    what: 'setLimits',
    claim: { ...(by !== undefined && { by }) },
  });
  startClock(session);
  return session.state.config.limits;
}

function refuseLimits(state: RunState, given: unknown): string | null {
  const limits = isObject(given) ? withoutClaim(given) : given;
  const problem =
    claimProblem(given) ??
    (limits === undefined ? 'limits: give e.g. {"steps": 10}' : checkLimits(limits, 'limits'));
  if (problem !== null) return problem;
  const { costUsd, run } = isObject(limits) ? limits : {};
  const costs = [costUsd, isObject(run) ? run['costUsd'] : null].some(
    (cost) => typeof cost === 'number',
  );
  if (costs && isLoaded(state) && state.config.price === null) {
    return `limits.costUsd: nobody knows the price of model "${state.config.definition.model}"; use limits.tokens`;
  }
  return ended(state);
}

function withoutClaim(given: Record<string, unknown>): Record<string, unknown> {
  const { by: _, ...limits } = given;
  return limits;
}

function ended(state: RunState): string | null {
  return !state.open && state.turn.outcome !== null ? 'the run has ended' : null;
}
