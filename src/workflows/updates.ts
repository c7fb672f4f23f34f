import { condition, currentUpdateInfo, setHandler } from '@temporalio/workflow';
import { acceptMessage, acceptSignal, askProblem, askRefusal } from '../core/ask.js';
import type { Limits } from '../core/definition/definition.js';
import { isLoaded } from '../core/definition/initial-config.js';
import type { Ask, AskReceipt } from '../core/inbox.js';
import { checkLimits, show } from '../core/input/input.js';
import { isObject } from '../core/json.js';
import { apply } from '../core/loop.js';
import { inTurn, type RunState } from '../core/state.js';
import { startDeadlineTimer } from './deadline-timer.js';
import {
  askUpdate,
  cancelTurnUpdate,
  closeUpdate,
  messageSignal,
  outcomeUpdate,
  pauseUpdate,
  resumeUpdate,
  setLimitsUpdate,
  type ActorClaim,
  type TurnOutcome,
} from './messages.js';
import { claimProblem, currentUpdate, recordDecision } from './record-decision.js';
import { refuse } from './refuse.js';
import { interrupt, resume, type RunContext } from './run-context.js';

/**
 * Callers that may wait for an outcome. Each takes one of the ten updates that may be in flight; the
 * others stay free for messages.
 */
const MAX_WAITERS = 4;

/**
 * Handles the signal `message`, which may hold anything. Has to be called before any other handler is
 * set: the SDK delivers what came before the run began as handlers are set, and the history, as every
 * reader of it, has signals before updates.
 */
export function handleSignals(run: RunContext): void {
  setHandler(messageSignal, (ask) => {
    const event = acceptSignal(run.state, ask, Date.now());
    if (event !== null) apply(run, event);
  });
}

/** Handles messages and control. No handler waits for an activity, so none delays a new segment. */
export function handleUpdates(run: RunContext): void {
  setHandler(resumeUpdate, (claim) => resumeRun(run, claim), {
    validator: (claim) => refuse(claimProblem(claim)),
  });
  setHandler(askUpdate, (ask) => takeMessage(run, ask), {
    validator: (ask) => refuse(askProblem(ask) ?? askRefusal(run.state, ask, messageId(ask))),
  });
  setHandler(outcomeUpdate, ({ turn }) => outcomeOf(run, turn), {
    validator: (given) => refuse(waitProblem(run, given)),
  });
  setHandler(cancelTurnUpdate, (claim) => cancelTurn(run, claim), {
    validator: (claim) => refuse(cancelProblem(run, claim)),
  });
  setHandler(pauseUpdate, (claim) => pause(run, claim), {
    validator: (claim) => refuse(claimProblem(claim) ?? endedProblem(run.state)),
  });
  setHandler(setLimitsUpdate, (limits) => setLimits(run, limits), {
    validator: (limits) => refuse(limitsProblem(run.state, limits)),
  });
  setHandler(closeUpdate, (claim) => close(run, claim), {
    validator: (claim) =>
      refuse(claimProblem(claim) ?? (run.state.open ? null : 'this run ends by itself')),
  });
}

function resumeRun(run: RunContext, claim: ActorClaim | undefined): { readonly resumed: true } {
  const update = currentUpdate(run);
  if (update.before === undefined) {
    resume(run);
    recordDecision(run, update, { what: 'resume', claim });
    run.changed();
  }
  return { resumed: true };
}

/** Cancels the turn under way. An update that is sent again names the turn that it has canceled. */
function cancelTurn(run: RunContext, claim: ActorClaim): { readonly cancelled: number } {
  const update = currentUpdate(run);
  const { number: turn } = run.state.turn;
  if (update.before !== undefined) return { cancelled: update.before.turn ?? turn };
  interrupt(run, 'cancelTurn');
  recordDecision(run, update, { what: 'cancelTurn', turn, claim });
  return { cancelled: turn };
}

function pause(run: RunContext, claim: ActorClaim | undefined): { readonly paused: true } {
  const update = currentUpdate(run);
  if (update.before === undefined) {
    apply(run, { type: 'paused', paused: true });
    recordDecision(run, update, { what: 'pause', claim });
    run.changed();
  }
  return { paused: true };
}

function close(run: RunContext, claim: ActorClaim | undefined): { readonly closing: true } {
  const update = currentUpdate(run);
  if (update.before === undefined) {
    apply(run, { type: 'ending', by: 'closed' });
    recordDecision(run, update, { what: 'close', claim });
  }
  return { closing: true };
}

function takeMessage(run: RunContext, ask: Ask): AskReceipt {
  const { receipt, event } = acceptMessage(run.state, ask, messageId(ask));
  if (event !== null) apply(run, event);
  return receipt;
}

/** A message without an id takes that of the update, so an update sent again is the same message. */
function messageId({ id }: Ask): string {
  return id ?? currentUpdateInfo()?.id ?? '';
}

async function outcomeOf(run: RunContext, turn: number): Promise<TurnOutcome> {
  const found = (): TurnOutcome | undefined => {
    if (run.state.turn.number === turn && run.state.turn.outcome !== null) {
      return run.state.turn.outcome;
    }
    return run.state.recent.find((ended) => ended.turn === turn)?.outcome;
  };
  run.waiters += 1;
  try {
    await condition(() => found() !== undefined || run.leaving || run.ended !== null);
  } finally {
    run.waiters -= 1;
  }
  return found() ?? run.ended ?? { pending: true };
}

function cancelProblem(run: RunContext, given: unknown): string | null {
  const { state } = run;
  const problem = claimProblem(given);
  if (problem !== null) return problem;
  if (currentUpdate(run).before !== undefined) return null;
  if (!state.open) return 'this run ends with its turn: cancel the run itself';
  if (!inTurn(state)) return 'no turn is under way';
  const turn = isObject(given) ? given['turn'] : undefined;
  if (turn === undefined || turn === state.turn.number) return null;
  return `turn: expected ${state.turn.number}, the turn under way, got ${show(turn)}`;
}

function waitProblem({ state, waiters }: RunContext, given: unknown): string | null {
  const turn = isObject(given) ? given['turn'] : undefined;
  if (!Number.isInteger(turn) || Number(turn) < 1) {
    return `turn: expected a whole number from 1, got ${show(turn)}; give {"turn": 1}`;
  }
  const last = Math.max(state.turn.number, state.inbox.lastTurn);
  if (Number(turn) > last)
    return `turn: expected at most ${last}, the last turn, got ${show(turn)}`;
  const isKnown =
    state.recent.some((ended) => ended.turn === turn) || Number(turn) >= state.turn.number;
  if (!isKnown)
    return `turn: the run no longer has the outcome of turn ${show(turn)}; read its transcript`;
  if (waiters < MAX_WAITERS) return null;
  return `outcome: ${MAX_WAITERS} callers wait already; follow the run's history instead`;
}

/** Sets limits. Waits until the agent is loaded, because only then its price and limits are known. */
async function setLimits(
  run: RunContext,
  { by, ...limits }: Limits & ActorClaim,
): Promise<RunState['config']['limits']> {
  const update = currentUpdate(run);
  if (!isLoaded(run.state)) {
    const hasEnded = (): boolean => run.leaving || run.ended !== null;
    await condition(() => isLoaded(run.state) || hasEnded());
    if (!isLoaded(run.state)) refuse('limits: the agent is not loaded yet; set them later');
    refuse(limitsProblem(run.state, limits));
  }
  if (update.before !== undefined) return run.state.config.limits;
  apply(run, { type: 'limits-set', limits });
  recordDecision(run, update, {
    what: 'setLimits',
    claim: { ...(by !== undefined && { by }) },
  });
  startDeadlineTimer(run);
  return run.state.config.limits;
}

function limitsProblem(state: RunState, given: unknown): string | null {
  const limits = isObject(given) ? withoutClaim(given) : given;
  const problem =
    claimProblem(given) ??
    (limits === undefined
      ? 'limits: expected an object, got nothing; give for example {"steps": 10}'
      : checkLimits(limits, 'limits'));
  if (problem !== null) return problem;
  const { costUsd, run } = isObject(limits) ? limits : {};
  const limitsCost = [costUsd, isObject(run) ? run['costUsd'] : null].some(
    (cost) => typeof cost === 'number',
  );
  if (limitsCost && isLoaded(state) && state.config.price === null) {
    return `limits.costUsd: the price of model "${state.config.definition.model}" is unknown; use limits.tokens`;
  }
  return endedProblem(state);
}

function withoutClaim(given: Record<string, unknown>): Record<string, unknown> {
  const { by: _, ...limits } = given;
  return limits;
}

function endedProblem(state: RunState): string | null {
  return !state.open && state.turn.outcome !== null ? 'the run has ended' : null;
}
