import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  sleep,
  upsertMemo,
} from '@temporalio/workflow';
import { failed } from '../core/ends.js';
import { isProblem, parseRunInput } from '../core/input.js';
import { runTurn } from '../core/loop.js';
import { end } from '../core/change.js';
import type { Outcome } from '../core/outcome.js';
import { reduce } from '../core/reduce.js';
import { initialState, type RunState } from '../core/state.js';
import { answerQuestions } from './handlers.js';
import { inputFailure, loadConfig } from './load.js';
import { callModel } from './model-call.js';
import { presence, rememberTurn } from './presence.js';
import { messageOf } from './problem.js';
import { createSession, interrupt, type Session } from './session.js';
import { runCalls } from './tool-calls.js';

/**
 * Workflow type `agent`: one run of one agent. Returns the outcome when it completed or stopped,
 * ends Canceled when it was cancelled, fails with `AgentFailed` (outcome in the details) else.
 */
export async function agent(input: unknown): Promise<Outcome> {
  const root = CancellationScope.current();
  // After a native cancel everything in the root scope is cancelled at once; the loop has to
  // outlive it, to answer the open calls and to write down the outcome.
  return await CancellationScope.nonCancellable(() => run(input, root));
}

async function run(given: unknown, root: CancellationScope): Promise<Outcome> {
  const input = parseRunInput(given);
  if (isProblem(input)) throw inputFailure(input.problem);
  const session = createSession(input, initialState(await loadConfig(input)));
  answerQuestions(session);
  root.cancelRequested.catch(() => interrupt(session, 'cancel'));
  if (root.consideredCancelled) interrupt(session, 'cancel');
  session.changed = presence(session);
  if (input.tags !== undefined) upsertMemo({ tags: [...input.tags] });
  const outcome = await turn(session, input.message ?? '');
  rememberTurn(session.state.turn.number, outcome);
  session.changed();
  // An update that was accepted gets its answer before the run is gone.
  await condition(allHandlersFinished);
  return conclude(outcome);
}

async function turn(session: Session, message: string): Promise<Outcome> {
  const begun = { type: 'message-received', text: message, at: Date.now() } as const;
  session.state = reduce(session.state, begun);
  const clock = startDeadline(session);
  try {
    session.state = await runTurn(session.state, {
      now: () => Date.now(),
      callModel: (state, call) => callModel(session, state, call),
      runCalls: (state, calls) => runCalls(session, state, calls),
      observe: (state) => {
        session.state = state;
      },
    });
  } catch (error) {
    // A plain exception would make the workflow task retry for ever; it ends this turn instead.
    session.state = fault(session.state, error);
  } finally {
    clock.cancel();
  }
  const { outcome } = session.state.turn;
  return outcome ?? failed(session.state, { reason: 'error', message: 'the turn has no outcome' });
}

function fault(state: RunState, error: unknown): RunState {
  const message = `a fault of perdure itself: ${messageOf(error)}`;
  return end(state, failed(state, { reason: 'error', message }));
}

/** Breaks the turn off when its time is up; without a limit of time there is no timer. */
function startDeadline(session: Session): CancellationScope {
  const { turn: perTurn, run: perRun } = session.state.config.limits;
  const wallMs = Math.min(perTurn.wallMs ?? Infinity, perRun.wallMs ?? Infinity);
  const scope = new CancellationScope();
  if (wallMs === Infinity) return scope;
  scope
    .run(async () => {
      await sleep(wallMs);
      interrupt(session, 'wallMs');
    })
    .catch(() => undefined);
  return scope;
}

function conclude(outcome: Outcome): Outcome {
  switch (outcome.status) {
    case 'completed':
    case 'stopped':
      return outcome;
    case 'cancelled':
      throw new CancelledFailure('the run was cancelled', [outcome]);
    case 'failed':
      throw ApplicationFailure.create({
        type: 'AgentFailed',
        nonRetryable: true,
        message: `${outcome.reason}: ${outcome.error ?? ''}`,
        details: [outcome],
      });
  }
}
