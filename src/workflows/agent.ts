import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  ContinueAsNew,
  upsertMemo,
} from '@temporalio/workflow';
import { end } from '../core/change.js';
import { failed } from '../core/ends.js';
import { isProblem, parseRunInput, type RunInput } from '../core/input.js';
import { apply, runLoop } from '../core/loop.js';
import type { Outcome } from '../core/outcome.js';
import { reduce } from '../core/reduce.js';
import { inTurn, type RunState } from '../core/state.js';
import { firstState, readCarried } from './carried.js';
import { startClock } from './clock.js';
import { effects } from './effects.js';
import { fork } from './fork.js';
import { answerQuestions } from './handlers.js';
import { archiveRest } from './keep.js';
import { inputFailure, loadConfig } from './load.js';
import { takeMessages } from './message-handlers.js';
import { presence, rememberTurn } from './presence.js';
import { messageOf } from './problem.js';
import { createSession, interrupt, type Session } from './session.js';

/**
 * Workflow type `agent`: one run of one agent. Returns the outcome when it completed or stopped,
 * ends Canceled when it was cancelled, fails with `AgentFailed` (outcome in the details) else.
 * The second argument is the run's own, from segment to segment.
 */
export async function agent(input: unknown, carried?: unknown): Promise<Outcome> {
  const root = CancellationScope.current();
  // After a native cancel everything in the root scope is cancelled at once; the loop has to
  // outlive it, to answer the open calls and to write down the outcome.
  return await CancellationScope.nonCancellable(() => run(input, carried, root));
}

async function run(given: unknown, carried: unknown, root: CancellationScope): Promise<Outcome> {
  const before = readCarried(carried);
  const input = parseRunInput(given, { continued: before !== null });
  if (isProblem(input)) throw inputFailure(input.problem);
  const session = createSession(input, before ?? { state: firstState(input), shown: '' });
  // Before anything is awaited: a message may come with the very start.
  answerQuestions(session);
  takeMessages(session);
  root.cancelRequested.catch(() => interrupt(session, 'cancel'));
  if (before === null) await begin(session, input);
  session.changed = presence(session);
  if (root.consideredCancelled) interrupt(session, 'cancel');
  startClock(session);
  const outcome = await live(session);
  await finish(session, outcome);
  return conclude(outcome);
}

async function begin(session: Session, input: RunInput): Promise<void> {
  const config = await loadConfig(input);
  const { contextBlob } = input;
  apply(session, {
    type: 'agent-loaded',
    config: { ...config, ...(contextBlob && { contextBlob }) },
  });
  if (input.tags !== undefined) upsertMemo({ tags: [...input.tags] });
  if (input.fork !== undefined) await fork(session, input.fork);
}

/** A plain exception would make the workflow task retry for ever; it ends the turn instead. */
async function live(session: Session): Promise<Outcome> {
  for (;;) {
    try {
      return await runLoop(session, effects(session));
    } catch (error) {
      if (error instanceof ContinueAsNew || !inTurn(session.state)) throw faultOfRun(error);
      session.state = broken(session.state, faultText(error));
    }
  }
}

/** The calls that are open get their results, else every later prompt would be refused. */
function broken(state: RunState, message: string): RunState {
  const told = reduce(state, {
    type: 'interrupted',
    by: 'cancelTurn',
    results: [],
    at: Date.now(),
  });
  return end(told, failed(told, { reason: 'error', message }));
}

/** What goes wrong outside all turns ends the run, visibly. */
function faultOfRun(error: unknown): unknown {
  if (error instanceof ContinueAsNew) return error;
  return ApplicationFailure.create({
    type: 'AgentFailed',
    nonRetryable: true,
    message: faultText(error),
  });
}

function faultText(error: unknown): string {
  return `a fault of perdure itself: ${messageOf(error)}`;
}

async function finish(session: Session, outcome: Outcome): Promise<void> {
  session.ended = outcome;
  session.clock?.cancel();
  await archiveRest(session);
  if (session.state.open) rememberTurn(session, session.state.turn.number, outcome);
  session.changed();
  // An update that was accepted gets its answer before the run is gone.
  session.leaving = true;
  await condition(allHandlersFinished);
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
