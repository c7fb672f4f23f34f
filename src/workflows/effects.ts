import { CancellationScope, condition, sleep } from '@temporalio/workflow';
import { wakes } from '../core/calls/batch.js';
import { apply, type Effects } from '../core/loop.js';
import { nextAction, type Action } from '../core/next-action.js';
import { startClock } from './deadline-timer.js';
import { reloadAgent } from './load.js';
import { callModel } from './model-call.js';
import { continueAsNew } from './next-segment.js';
import { keepForArchive } from './archive-messages.js';
import { rememberTurn } from './visibility.js';
import { retrieve } from './retrieval.js';
import { takeInterruption, unlessInterrupted, type Session } from './run-context.js';
import { forgetStanding } from './standing.js';
import { segmentFacts } from './segment-facts.js';
import { runCalls } from './calls/tool-calls.js';

/** A run that was started for a message which never came (it was refused) does not wait for ever. */
const FIRST_MESSAGE_MS = 60 * 60_000;

/** What the loop does in the world. */
export function effects(session: Session): Effects {
  return {
    now: () => Date.now(),
    segment: () => segmentFacts(session),
    callModel: (state, call) => callModel(session, state, call),
    retrieve: (state, asked) => retrieve(session, state, asked),
    runCalls: (state, calls, finished) => runCalls(session, state, { calls, finished }),
    awaitTime: (until) => awaiting(session, 'await-time', () => untilTimeOrMessage(session, until)),
    awaitChange: (action) => awaiting(session, action.type, () => untilChange(session, action)),
    recordTurn: (turn, outcome) => {
      // What would have broken this turn off, or stood in its way, is not the next one's.
      takeInterruption(session);
      forgetStanding(session);
      startClock(session);
      rememberTurn(session, turn, outcome);
      if (!session.state.open) session.changed();
    },
    turnBegun: () => startClock(session),
    continueAsNew: () => continueAsNew(session),
    refreshAgent: () => reloadAgent(session),
    keepMessages: (must) => keepForArchive(session, must),
    observe: () => undefined,
  };
}

/** Shows what the run waits for while it does. */
async function awaiting(
  session: Session,
  what: Action['type'],
  wait: () => Promise<unknown>,
): ReturnType<typeof unlessInterrupted> {
  session.awaiting = what;
  session.changed();
  try {
    return await unlessInterrupted(session, wait);
  } finally {
    session.awaiting = null;
  }
}

async function untilChange(session: Session, action: Action): Promise<void> {
  const changed = (): boolean =>
    nextAction(session.state, segmentFacts(session)).type !== action.type;
  if (action.type !== 'await-message' || session.state.inbox.lastTurn > 0) {
    return await condition(changed);
  }
  const came = await condition(changed, FIRST_MESSAGE_MS);
  if (!came) apply(session, { type: 'ending', by: 'closed' });
}

async function untilTimeOrMessage(session: Session, until: number): Promise<void> {
  const woken = (): boolean => wakes(session.state);
  const waitMs = until - Date.now();
  if (woken() || waitMs <= 0) return;
  const summary = `wait until ${new Date(until).toISOString()}`;
  const timer = new CancellationScope();
  try {
    await Promise.race([timer.run(() => sleep(waitMs, { summary })), condition(woken)]);
  } finally {
    timer.cancel();
  }
}
