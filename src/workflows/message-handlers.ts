import { condition, currentUpdateInfo, setHandler } from '@temporalio/workflow';
import { askProblem, askRefusal, receive } from '../core/ask.js';
import type { Ask, AskReceipt } from '../core/inbox.js';
import { checkLimits, show } from '../core/input.js';
import { isObject } from '../core/json.js';
import type { Limits } from '../core/definition.js';
import { apply } from '../core/loop.js';
import { inTurn, type RunState } from '../core/state.js';
import { startClock } from './clock.js';
import {
  askUpdate,
  cancelTurnUpdate,
  closeUpdate,
  outcomeUpdate,
  pauseUpdate,
  setLimitsUpdate,
  type TurnOutcome,
} from './handles.js';
import { refusal } from './problem.js';
import { interrupt, type Session } from './session.js';

/** Each waiter takes one of the ten updates that may be in flight; the others stay free for messages. */
const WAITERS = 4;

/** Takes messages and control. No handler waits for an activity, so none holds a segment open. */
export function takeMessages(session: Session): void {
  setHandler(askUpdate, (ask) => take(session, ask), {
    validator: (ask) => refuse(askProblem(ask) ?? askRefusal(session.state, ask, idOf(ask))),
  });
  setHandler(outcomeUpdate, (wanted) => outcomeOf(session, wanted.turn), {
    validator: (wanted) => refuse(refuseWait(session, wanted)),
  });
  setHandler(
    cancelTurnUpdate,
    () => {
      interrupt(session, 'cancelTurn');
      return { cancelled: session.state.turn.number };
    },
    { validator: (wanted) => refuse(refuseCancel(session.state, wanted)) },
  );
  setHandler(
    pauseUpdate,
    () => {
      apply(session, { type: 'paused', paused: true });
      session.changed();
      return { paused: true } as const;
    },
    { validator: () => refuse(ended(session.state)) },
  );
  setHandler(setLimitsUpdate, (limits) => setLimits(session, limits), {
    validator: (limits) => refuse(refuseLimits(session.state, limits)),
  });
  setHandler(
    closeUpdate,
    () => {
      apply(session, { type: 'ending', by: 'closed' });
      return { closing: true } as const;
    },
    { validator: () => refuse(session.state.open ? null : 'this run ends by itself') },
  );
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

function refuseCancel(state: RunState, wanted: unknown): string | null {
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
async function setLimits(session: Session, limits: Limits): Promise<RunState['config']['limits']> {
  if (!isLoaded(session.state)) {
    await condition(() => isLoaded(session.state));
    refuse(refuseLimits(session.state, limits));
  }
  apply(session, { type: 'limits-set', limits });
  startClock(session);
  return session.state.config.limits;
}

function isLoaded(state: RunState): boolean {
  return state.config.definition.hash !== '';
}

function refuseLimits(state: RunState, limits: unknown): string | null {
  const problem =
    limits === undefined ? 'limits: give e.g. {"steps": 10}' : checkLimits(limits, 'limits');
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

function ended(state: RunState): string | null {
  return !state.open && state.turn.outcome !== null ? 'the run has ended' : null;
}
