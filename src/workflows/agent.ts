import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  ContinueAsNew,
  TemporalFailure,
  upsertMemo,
  workflowInfo,
} from '@temporalio/workflow';
import { end } from '../core/change.js';
import { failed } from '../core/ends.js';
import { isProblem, parseRunInput, type RunInput, type ForkInput } from '../core/input/input.js';
import { apply, runLoop } from '../core/loop.js';
import { NewerStateError } from '../core/segments/migrations.js';
import type { Outcome } from '../core/outcome.js';
import { reduce } from '../core/reduce.js';
import { problemText } from '../core/text/format-value.js';
import { inTurn, type RunState } from '../core/state.js';
import { isLoaded } from '../core/definition/initial-config.js';
import { firstState, readCarried } from './continue-as-new.js';
import { startClock } from './deadline-timer.js';
import { effects } from './effects.js';
import { answerQuestions } from './queries.js';
import { archiveRest } from './archive-messages.js';
import { inputFailure, pinAgent, rootRun, refused } from './load.js';
import { takeMessages, takeRecorded } from './updates.js';
import { continueAsNew } from './next-segment.js';
import { presence, rememberTurn } from './visibility.js';
import { messageOf } from './problem.js';
import { createSession, interrupt, type Session, inFlight } from './run-context.js';
import { LEFT, standOn } from './standing.js';
import type { ForkMessagesInput } from '../core/contract.js';
import { isForked, type ForkMessagesResult } from '../core/guards/recorded.js';
import { forkMessages, forkMessagesBlocked } from './activities.js';
import { mendInPlace } from './blocking.js';
import { fitting } from './calls/recorded-result.js';

/**
 * Workflow type `agent`: one run of one agent. Returns the outcome when it completed or stopped,
 * ends Canceled when it was cancelled, fails with `AgentFailed` (outcome in the details) else.
 * The second argument is the run's own, from segment to segment; a starter's is refused.
 */
export async function agent(input: unknown, carried?: unknown): Promise<Outcome> {
  const root = CancellationScope.current();
  // After a native cancel everything in the root scope is cancelled at once; the loop has to
  // outlive it, to answer the open calls and to write down the outcome.
  try {
    return await CancellationScope.nonCancellable(() => runSegment(input, carried, root));
  } catch (error) {
    throw failureOfRun(error);
  }
}

async function runSegment(
  given: unknown,
  carried: unknown,
  root: CancellationScope,
): Promise<Outcome> {
  const notNow = startProblem();
  if (notNow !== null) throw inputFailure(notNow);
  const before = readCarried(carried);
  const input = parseRunInput(given, { continued: before !== null });
  if (isProblem(input)) throw inputFailure(input.problem);
  const notCalled = calledProblem(input);
  if (notCalled !== null) throw inputFailure(notCalled);
  const session = createSession(input, before ?? { state: firstState(input), shown: '' });
  // Before anything is awaited: a message may come with the very start.
  takeRecorded(session);
  answerQuestions(session);
  takeMessages(session);
  root.cancelRequested.catch(() => interrupt(session, 'cancel'));
  if (root.consideredCancelled) interrupt(session, 'cancel');
  session.changed = presence(session);
  standOn(session, before?.blocked ?? []);
  if (!isLoaded(session.state)) await begin(session, input);
  startClock(session);
  const outcome = await live(session);
  await finish(session, outcome);
  return conclude(outcome);
}

/**
 * Pins the agent, and takes over what the run begins with. A cancel takes effect at any moment of it:
 * the run then ends like any that is cancelled before its first step.
 */
async function begin(session: Session, input: RunInput): Promise<void> {
  if (input.contextBlob !== undefined && workflowInfo().parent === undefined) {
    throw inputFailure('contextBlob: only an agent that calls another gives it; give `context`');
  }
  try {
    let config = await pinAgent(session);
    while (config === LEFT) {
      await continueAsNew(session);
      config = await pinAgent(session);
    }
    const { contextBlob } = input;
    const called = contextBlob && { contextBlob: { ...contextBlob, root: rootRun() } };
    apply(session, { type: 'agent-loaded', config: { ...config, ...called } });
    if (input.tags !== undefined) upsertMemo({ tags: [...input.tags] });
    if (input.fork !== undefined) await fork(session, input.fork);
  } catch (error) {
    if (session.interruption === null || error instanceof ContinueAsNew) throw error;
  }
}

/** A plain exception would make the workflow task retry for ever; it ends the turn instead. */
async function live(session: Session): Promise<Outcome> {
  for (;;) {
    try {
      return await runLoop(session, effects(session));
    } catch (error) {
      if (error instanceof ContinueAsNew || !inTurn(session.state)) throw error;
      session.state = broken(session.state, faultText(error));
    }
  }
}

/** The calls that are open get their results, else every later prompt would be refused. */
function broken(state: RunState, message: string): RunState {
  const told = reduce(state, {
    type: 'interrupted',
    by: 'cancelTurn',
    at: Date.now(),
  });
  return end(told, failed(told, { reason: 'error', message }));
}

/**
 * What goes wrong outside all turns ends the run, visibly; a plain exception would fail its workflow
 * task again and again. Only a state of a newer version waits for a worker that can read it.
 */
function failureOfRun(error: unknown): unknown {
  const passes = [ContinueAsNew, TemporalFailure, NewerStateError];
  if (passes.some((known) => error instanceof known)) return error;
  return ApplicationFailure.create({
    type: 'AgentFailed',
    nonRetryable: true,
    message: faultText(error),
  });
}

function faultText(error: unknown): string {
  return problemText(`a fault of perdure itself: ${messageOf(error)}`);
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

/** Puts the messages of another run before all that is said in this one, and remembers which. */
async function fork(session: Session, { run, at }: ForkInput): Promise<void> {
  const { name: agent, forkFrom } = session.state.config.definition;
  const input = { run, agent, ...(forkFrom && { forkFrom }), ...(at !== undefined && { at }) };
  const {
    next,
    chunk,
    head,
    tokens,
    pinned = [],
    artifacts,
    ...read
  } = await messagesOf(session, input);
  const from = { run, runId: read.from.runId, at: next };
  apply(session, {
    type: 'forked',
    from,
    chunk,
    head,
    tokens,
    pinned,
    ...(artifacts && { artifacts }),
  });
  upsertMemo({ forkedFrom: from });
}

async function messagesOf(session: Session, input: ForkMessagesInput): Promise<ForkMessagesResult> {
  const { resumes } = session;
  try {
    const taken = await inFlight(session, () => forkMessages(input));
    return fitting('forkMessages', isForked, taken);
  } catch (error) {
    const work = {
      name: 'fork',
      reasons: ['storage'],
      breakable: true,
      attempt: async (blocked: 'storage' | undefined) => {
        const taken = await forkMessagesBlocked({ ...input, ...(blocked && { blocked }) });
        return fitting('forkMessages', isForked, taken);
      },
    } as const;
    return await mendInPlace(session, work, { error, resumes }).catch((failure: unknown) => {
      // A cancel is no fault of the input.
      throw session.interruption === null ? refused(failure) : failure;
    });
  }
}

/**
 * Returns why this run may not begin as it was started, or null. A cron schedule or a retry policy
 * makes the server start the workflow again with its starter's arguments, so the run could not tell
 * them from its own state.
 */
function startProblem(): string | null {
  const { cronSchedule, retryPolicy } = workflowInfo();
  if (cronSchedule) {
    return `cronSchedule: expected none, got ${JSON.stringify(cronSchedule)}; use a Temporal schedule that starts the agent`;
  }
  if (retryPolicy === undefined) return null;
  return 'retryPolicy: expected none; a run retries by itself, and to start it again at times use a Temporal schedule';
}

/** Returns why what a calling workflow sets is refused, or null: a run without a caller has none. */
function calledProblem({ called }: RunInput): string | null {
  if (called === undefined || workflowInfo().parent !== undefined) return null;
  return 'called: expected a calling workflow; leave it out';
}
