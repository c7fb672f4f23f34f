import { condition, currentUpdateInfo, setHandler } from '@temporalio/workflow';
import type { Limits } from '../../core/definition/definition.js';
import type { Ask, AskReceipt } from '../../core/input/inbox.js';
import { actorProblem } from '../../core/input/turn-context.js';
import { checkLimits, checkRecordedLimits } from '../../core/input/limits.js';
import { limitsCost } from '../../core/interpret/activities.js';
import { type Refused, decisionProblem } from '../../core/requests/refusal.js';
import { isLoaded } from '../../core/rules/limits.js';
import { acceptMessage, askProblem, askRefusal, type Refusal } from '../../core/run/ask.js';
import { noTurnRefusal } from '../../core/run/no-turn.js';
import { decidedBefore } from '../../core/state/decisions.js';
import type { ControlDecision, RunState } from '../../core/state/state.js';
import { getOutcome, inTurn } from '../../core/state/turn.js';
import { undoProblem } from '../../core/state/undo-problem.js';
import { callToUndo } from '../../core/state/undo.js';
import { isObject, isList } from '../../core/text/json.js';
import { show } from '../../core/text/text.js';
import type { Decision, DecisionReceipt } from '../../core/transcript/request.js';
import { runUndo } from '../requests.js';
import { type RunContext, recordNow, startDeadlineTimer } from '../run-context.js';
import {
  type ActorClaim,
  type TurnOutcome,
  askUpdate,
  cancelTurnUpdate,
  closeUpdate,
  messageSignal,
  outcomeUpdate,
  pauseSignal,
  pauseUpdate,
  resolveUpdate,
  resumeSignal,
  wakeSignal,
  resumeUpdate,
  revokeUpdate,
  setLimitsUpdate,
  undoUpdate,
} from './definitions.js';
import { refuse } from './queries.js';

/** Returns the id of the update that is being handled. */
function updateId(): string {
  return currentUpdateInfo()?.id ?? '';
}

/** Records a decision. The same update sent again has no second effect. */
function decide<T>(run: RunContext, name: ControlDecision, input: unknown, answer: T): T {
  const { paused } = run.state;
  recordNow(run, { type: 'update', name, id: updateId(), input });
  if (run.state.paused !== paused) run.publishStatus();
  return answer;
}

/** Returns what is wrong with the claim in an update's argument, or null. */
function claimProblem(input: unknown): string | null {
  return actorProblem(input);
}

/**
 * Handles decisions about requests, grants, and undoing. Updates refused by a validator are not
 * recorded.
 */
function handleRequestUpdates(run: RunContext): void {
  setHandler(resolveUpdate, (decisions) => resolve(run, decisions), {
    validator: (decisions) => {
      const arrival = { update: updateId(), now: Date.now() };
      refuseFor(claimsProblem(decisions) ?? decisionProblem(run.state, decisions, arrival));
    },
  });
  setHandler(revokeUpdate, (input) => decide(run, 'revoke', input, { revoked: input.grant }), {
    validator: (input) => refuse(claimProblem(input) ?? revokeProblem(run.state, input)),
  });
  setHandler(undoUpdate, (input) => undo(run, input), {
    validator: (input) => refuse(claimProblem(input) ?? undoRefusal(run.state, input)),
  });
}

/** Handles decisions. An update that is sent again gets the same answer. */
function resolve(
  run: RunContext,
  input: Decision | readonly Decision[],
): { readonly resolved: readonly DecisionReceipt[] } {
  recordNow(run, { type: 'update', name: 'resolve', id: updateId(), input });
  const decisions: readonly Decision[] = isList(input) ? input : [input];
  const resolved = decisions.map(({ request, as }): DecisionReceipt => {
    const isChecked = run.state.work.some((work) => work.proposal?.decision.request === request);
    return { request, as, ...(isChecked && { checking: true }) };
  });
  return { resolved };
}

/** Begins to undo a call. */
function undo(
  run: RunContext,
  input: ActorClaim & { readonly call?: string },
): { readonly undoing: string } {
  const id = updateId();
  const before = decidedBefore(run.state.decisions, id)?.call;
  if (before !== undefined) return { undoing: before };
  const found = callToUndo(run.state, input.call, Date.now())?.call.id ?? '';
  recordNow(run, { type: 'update', name: 'undo', id, input });
  runUndo(run, found);
  return { undoing: found };
}

function undoRefusal(state: RunState, input: unknown): string | null {
  if (decidedBefore(state.decisions, updateId()) !== undefined) return null;
  return undoProblem(state, isObject(input) ? input['call'] : undefined, Date.now());
}

function revokeProblem({ grants = [], decisions }: RunState, input: unknown): string | null {
  if (decidedBefore(decisions, updateId()) !== undefined) return null;
  const id = isObject(input) ? input['grant'] : undefined;
  if (grants.some((grant) => grant.id === id)) return null;
  const known = grants.length === 0 ? 'it has none' : grants.map((grant) => grant.id).join(', ');
  return `grant: expected a grant of this run (${known}), got ${show(id)}`;
}

/** Returns the refusal of a list of decisions if one of their claims is malformed. */
function claimsProblem(input: unknown): Refused | null {
  for (const one of Array.isArray(input) ? (input as readonly unknown[]) : [input]) {
    const message = claimProblem(one);
    if (message !== null) return { reason: 'malformed', message };
  }
  return null;
}

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
  setHandler(wakeSignal, () => {
    recordNow(run, { type: 'signal', name: wakeSignal.name, input: null });
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
      refuseFor(askRefusal(run.state, ask, { id: messageId(ask), now: Date.now() }));
    },
  });
  setHandler(outcomeUpdate, ({ turn }) => outcomeOfTurn(run, turn), {
    validator: (input) => refuse(waitProblem(run, input)),
  });
  setHandler(cancelTurnUpdate, (claim) => cancelTurn(run, claim), {
    validator: (claim) => refuseFor(cancelRefusal(run, claim)),
  });
  setHandler(pauseUpdate, (claim) => decide(run, 'pause', claim, { paused: true }), {
    validator: (claim) => {
      refuse(claimProblem(claim));
      refuseFor(endedRefusal(run.state));
    },
  });
  setHandler(setLimitsUpdate, (limits) => setLimits(run, limits), {
    validator: (limits) => refuseFor(limitsRefusal(run.state, limits)),
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

function refuseFor(refusal: Refusal | null): void {
  if (refusal !== null) refuse(refusal.message, refusal.reason);
}

function cancelRefusal(run: RunContext, input: unknown): Refusal | null {
  const { state } = run;
  const problem = claimProblem(input);
  if (problem !== null) return { message: problem };
  if (decidedBefore(state.decisions, updateId()) !== undefined) return null;
  if (!state.open) {
    const message = 'expected an open run; cancel the run instead of the turn';
    return endedRefusal(state) ?? { message };
  }
  if (!inTurn(state)) return noTurnRefusal(state);
  const turn = isObject(input) ? input['turn'] : undefined;
  if (turn === undefined || turn === state.turn.number) return null;
  return { message: `turn: expected ${state.turn.number}, the turn under way, got ${show(turn)}` };
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
      // The update was accepted, by the rules of its time.
      refuseFor(limitsRefusal(run.state, limits, checkRecordedLimits));
    }
  }
  startDeadlineTimer(run);
  return run.state.config.limits;
}

function limitsRefusal(state: RunState, input: unknown, check = checkLimits): Refusal | null {
  const limits = isObject(input) ? withoutClaim(input) : input;
  const problem =
    claimProblem(input) ??
    (limits === undefined
      ? 'limits: expected an object, got nothing; give for example {"steps": 10}'
      : check(limits, 'limits'));
  if (problem !== null) return { message: problem };
  if (limitsCost(limits) && isLoaded(state) && state.config.price === null) {
    const message = `limits.costUsd: the price of model "${state.config.definition.model}" is unknown; use limits.tokens`;
    return { message };
  }
  return endedRefusal(state);
}

function withoutClaim(input: Record<string, unknown>): Record<string, unknown> {
  const { by: _, door: _door, ...limits } = input;
  return limits;
}

function endedRefusal(state: RunState): Refusal | null {
  if (state.open || getOutcome(state) === null) return null;
  return { message: 'the run has ended', reason: 'run_ended' };
}
