import { CancellationScope, condition, sleep } from '@temporalio/workflow';
import { hasWakingMessage } from '../core/calls/batch.js';
import { apply, type Effects } from '../core/loop.js';
import { nextAction, type Action } from '../core/next-action.js';
import { archiveForCompaction } from './archive-messages.js';
import { forgetBlockedWork } from './blocked-work.js';
import { runCalls } from './calls/run-calls.js';
import { continueAsNew } from './continue-as-new.js';
import { startDeadlineTimer } from './deadline-timer.js';
import { reloadAgent } from './load-agent.js';
import { callModel } from './model-call.js';
import { retrieve } from './retrieval.js';
import { takeInterruption, unlessInterrupted, type RunContext } from './run-context.js';
import { segmentFacts } from './segment-facts.js';
import { recordTurnMemo } from './visibility.js';

/** An open run without a message ends after this time: the message that started it may be refused. */
const FIRST_MESSAGE_MS = 60 * 60_000;

/** Returns the effects of the loop: activities, timers, conditions, and the memo. */
export function effects(run: RunContext): Effects {
  return {
    now: () => Date.now(),
    segment: () => segmentFacts(run),
    callModel: (state, call) => callModel(run, state, call),
    retrieve: (state, asked) => retrieve(run, state, asked),
    runCalls: (state, calls, finished) => runCalls(run, state, { calls, finished }),
    awaitTime: (until) => awaiting(run, 'await-time', () => untilTimeOrMessage(run, until)),
    awaitChange: (action) => awaiting(run, action.type, () => untilChange(run, action)),
    recordTurn: (turn, outcome) => {
      // Neither an interruption nor a block of this turn carries over to the next one.
      takeInterruption(run);
      forgetBlockedWork(run);
      startDeadlineTimer(run);
      recordTurnMemo(run, turn, outcome);
      if (!run.state.open) run.changed();
    },
    turnBegun: () => startDeadlineTimer(run),
    continueAsNew: () => continueAsNew(run),
    refreshAgent: () => reloadAgent(run),
    archiveMessages: (must) => archiveForCompaction(run, must),
    observe: () => undefined,
  };
}

/** Shows what the run waits for, for as long as it waits. */
async function awaiting(
  run: RunContext,
  what: Action['type'],
  wait: () => Promise<unknown>,
): ReturnType<typeof unlessInterrupted> {
  run.awaiting = what;
  run.changed();
  try {
    return await unlessInterrupted(run, wait);
  } finally {
    run.awaiting = null;
  }
}

async function untilChange(run: RunContext, action: Action): Promise<void> {
  const changed = (): boolean => nextAction(run.state, segmentFacts(run)).type !== action.type;
  if (action.type !== 'await-message' || run.state.inbox.lastTurn > 0) {
    return await condition(changed);
  }
  const came = await condition(changed, FIRST_MESSAGE_MS);
  if (!came) apply(run, { type: 'ending', by: 'closed' });
}

async function untilTimeOrMessage(run: RunContext, until: number): Promise<void> {
  const woken = (): boolean => hasWakingMessage(run.state);
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
