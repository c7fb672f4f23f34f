import { condition, currentUpdateInfo, setHandler } from '@temporalio/workflow';
import { acceptMessage, askProblem, askRefusal } from '../../core/ask.js';
import { decidedBefore } from '../../core/decisions.js';
import type { Limits } from '../../core/definition/definition.js';
import { isLoaded } from '../../core/definition/initial-config.js';
import type { Ask, AskReceipt } from '../../core/inbox.js';
import { checkLimits } from '../../core/input/check-limits.js';
import { show } from '../../core/input/input.js';
import { isObject } from '../../core/json.js';
import { limitsCost } from '../../core/interpret/agent.js';
import { type RunState } from '../../core/state.js';
import { inTurn, getOutcome } from '../../core/turn.js';
import { startDeadlineTimer } from '../deadline-timer.js';
import {
  askUpdate,
  cancelTurnUpdate,
  closeUpdate,
  messageSignal,
  outcomeUpdate,
  pauseSignal,
  resumeSignal,
  pauseUpdate,
  resumeUpdate,
  setLimitsUpdate,
  type ActorClaim,
  type TurnOutcome,
} from './definitions.js';
import { refuse } from './refuse.js';
import { recordNow, type RunContext } from '../run-context.js';
import { handleRequestUpdates } from './request-updates.js';
import { claimProblem, decide, updateId } from './update-tools.js';

/**
 * Maximum callers that wait for an outcome. Each occupies one of the ten updates that may be in
 * flight; the others remain available for messages.
 */
const MAX_WAITERS = 4;

/**
 * Handles the signal `message`, which may contain anything. This must be called before any other
 * handler is set. The SDK delivers earlier messages as handlers are set, but histories and their
 * readers process signals before updates.
 */
export function handleSignals(run: RunContext): void {
  setHandler(messageSignal, (ask) => {
    recordNow(run, { type: 'signal', name: messageSignal.name, input: ask });
  });
  for (const signal of [pauseSignal, resumeSignal]) {
    setHandler(signal, (claim) => {
      recordNow(run, { type: 'signal', name: signal.name, input: claim });
      run.publishStatus();
    });
  }
}

/**
 * Handles messages and control updates. No handler waits for an activity, so none delays a new
 * segment.
 */
export function handleUpdates(run: RunContext): void {
  handleRequestUpdates(run);
  setHandler(resumeUpdate, (claim) => decide(run, 'resume', claim, { resumed: true }), {
    validator: (claim) => refuse(claimProblem(claim)),
  });
  setHandler(askUpdate, (ask) => takeMessage(run, ask), {
    validator: (ask) => {
      refuse(askProblem(ask));
      const refusal = askRefusal(run.state, ask, { id: messageId(ask), now: Date.now() });
      if (refusal !== null) refuse(refusal.message, refusal.reason);
    },
  });
  setHandler(outcomeUpdate, ({ turn }) => outcomeOfTurn(run, turn), {
    validator: (input) => refuse(waitProblem(run, input)),
  });
  setHandler(cancelTurnUpdate, (claim) => cancelTurn(run, claim), {
    validator: (claim) => refuse(cancelProblem(run, claim)),
  });
  setHandler(pauseUpdate, (claim) => decide(run, 'pause', claim, { paused: true }), {
    validator: (claim) => refuse(claimProblem(claim) ?? endedProblem(run.state)),
  });
  setHandler(setLimitsUpdate, (limits) => setLimits(run, limits), {
    validator: (limits) => refuse(limitsProblem(run.state, limits)),
  });
  setHandler(closeUpdate, (claim) => decide(run, 'close', claim, { closing: true }), {
    validator: (claim) =>
      refuse(
        claimProblem(claim) ??
          (run.state.open ? null : 'expected an open run; a task run ends with its turn'),
      ),
  });
}

/** Cancels the turn under way. An update that is sent again returns the turn that it canceled. */
function cancelTurn(run: RunContext, claim: ActorClaim): { readonly cancelled: number } {
  const id = updateId();
  const { number } = run.state.turn;
  recordNow(run, { type: 'update', name: 'cancelTurn', id, input: claim });
  return { cancelled: decidedBefore(run.state.decisions, id)?.turn ?? number };
}

function takeMessage(run: RunContext, ask: Ask): AskReceipt {
  const { receipt } = acceptMessage(run.state, ask, messageId(ask));
  recordNow(run, { type: 'update', name: 'ask', id: updateId(), input: ask });
  return receipt;
}

/**
 * Returns the id of a message; the default is the update's id, so an update sent again is the same
 * message.
 */
function messageId({ id }: Ask): string {
  return id ?? currentUpdateInfo()?.id ?? '';
}

async function outcomeOfTurn(run: RunContext, turn: number): Promise<TurnOutcome> {
  const found = (): TurnOutcome | undefined => {
    const outcome = getOutcome(run.state);
    if (run.state.turn.number === turn && outcome !== null) return outcome;
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

function cancelProblem(run: RunContext, input: unknown): string | null {
  const { state } = run;
  const problem = claimProblem(input);
  if (problem !== null) return problem;
  if (decidedBefore(state.decisions, updateId()) !== undefined) return null;
  if (!state.open) return 'expected an open run; cancel the run instead of the turn';
  if (!inTurn(state)) return 'no turn is under way';
  const turn = isObject(input) ? input['turn'] : undefined;
  if (turn === undefined || turn === state.turn.number) return null;
  return `turn: expected ${state.turn.number}, the turn under way, got ${show(turn)}`;
}

function waitProblem({ state, waiters }: RunContext, input: unknown): string | null {
  const turn = isObject(input) ? input['turn'] : undefined;
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
  return `outcome: ${MAX_WAITERS} callers are already waiting; follow the run's history instead`;
}

/**
 * Sets limits. Waits until the agent is loaded, because only then its price and limits are known.
 */
async function setLimits(
  run: RunContext,
  limits: Limits & ActorClaim,
): Promise<RunState['config']['limits']> {
  const id = updateId();
  recordNow(run, { type: 'update', name: 'setLimits', id, input: limits });
  if (!isLoaded(run.state)) {
    const hasEnded = (): boolean => run.leaving || run.ended !== null;
    await condition(() => isLoaded(run.state) || hasEnded());
    if (!isLoaded(run.state)) refuse('limits: the agent is not loaded yet; set them later');
    if (decidedBefore(run.state.decisions, id) === undefined) {
      refuse(limitsProblem(run.state, limits));
    }
  }
  startDeadlineTimer(run);
  return run.state.config.limits;
}

function limitsProblem(state: RunState, input: unknown): string | null {
  const limits = isObject(input) ? withoutClaim(input) : input;
  const problem =
    claimProblem(input) ??
    (limits === undefined
      ? 'limits: expected an object, got nothing; give for example {"steps": 10}'
      : checkLimits(limits, 'limits'));
  if (problem !== null) return problem;
  if (limitsCost(limits) && isLoaded(state) && state.config.price === null) {
    return `limits.costUsd: the price of model "${state.config.definition.model}" is unknown; use limits.tokens`;
  }
  return endedProblem(state);
}

function withoutClaim(input: Record<string, unknown>): Record<string, unknown> {
  const { by: _, ...limits } = input;
  return limits;
}

function endedProblem(state: RunState): string | null {
  return !state.open && getOutcome(state) !== null ? 'the run has ended' : null;
}
