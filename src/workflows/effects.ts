import { CancellationScope, condition, sleep } from '@temporalio/workflow';
import type { Effects } from '../core/loop.js';
import { FIRST_MESSAGE_MS, type AtOnceAction, type TimedAction } from '../core/next-action.js';
import { getOutcome } from '../core/turn.js';
import { archiveForCompaction } from './archive-messages.js';
import { loadRun } from './begin.js';
import { runCalls } from './calls/run-calls.js';
import { continueAsNew } from './continue-as-new.js';
import { startDeadlineTimer } from './deadline-timer.js';
import { reloadAgent } from './load-agent.js';
import { callModel, remember, retrieve } from './model-call.js';
import { WORK } from '../core/work/work.js';
import { checkProposal } from './check-decision.js';
import { publishRequests } from './requests.js';
import { renewScope, unlessInterrupted, type RunContext } from './run-context.js';
import { actionNow, segmentFacts } from './segment-facts.js';
import { updatesHandled } from './messages/updates-handled.js';
import { recordTurnMemo } from './visibility.js';

/** Returns the effects of the loop: activities, timers, conditions, and the memo. */
export function effects(run: RunContext): Effects {
  return {
    now: () => Date.now(),
    segment: segmentFacts,
    perform: (action) => perform(run, action).then(updatesHandled),
    changed: (action) => changed(run, action),
  };
}

/** Performs an action. It is not async, because each promise of a step makes replay slower. */
function perform(run: RunContext, action: TimedAction): Promise<unknown> {
  switch (action.type) {
    case 'call-model':
    case 'compact':
      return callModel(run, action);
    case 'run-calls':
      return runCalls(run, action.calls);
    case 'retrieve':
      return retrieve(run);
    case 'remember':
      return remember(run);
    case 'archive':
      return archiveForCompaction(run, action);
    case 'refresh-agent':
      return reloadAgent(run);
    case 'load':
      return loadRun(run);
    case 'continue-as-new':
      return continueAsNew(run);
    case 'await-time':
      return awaiting(run, () => untilTimeOrMessage(run, action.until));
    case 'check-decision':
      return checkProposal(run, WORK.limit);
    case 'await-message':
    case 'await-resume':
    case 'await-decision':
    case 'await-work':
      return awaiting(run, () => untilChange(run, action));
  }
}

function changed(run: RunContext, { type }: AtOnceAction): void {
  switch (type) {
    case 'begin-turn':
      return startDeadlineTimer(run);
    case 'interrupt':
      renewScope(run);
      return publishRequests(run);
    case 'record-turn': {
      renewScope(run);
      startDeadlineTimer(run);
      const { number } = run.state.turn;
      const outcome = getOutcome(run.state);
      if (outcome !== null) recordTurnMemo(number, outcome);
      if (!run.state.open) run.publishStatus();
      return;
    }
    case 'raise-requests':
    case 'ask-limit':
      return publishRequests(run);
    default:
  }
}

/** Publishes the waiting status, then waits. */
function awaiting(run: RunContext, wait: () => Promise<unknown>): Promise<void> {
  run.publishStatus();
  return unlessInterrupted(run, wait);
}

/** Whether the next action differs from this one. */
function isOther(run: RunContext, { type }: TimedAction): boolean {
  return actionNow(run).type !== type;
}

async function untilChange(run: RunContext, action: TimedAction): Promise<void> {
  const hasChanged = (): boolean => isOther(run, action);
  if (action.type === 'await-message' && run.state.inbox.lastTurn === 0) {
    const leftMs = run.state.startedAt + FIRST_MESSAGE_MS - Date.now();
    await condition(hasChanged, Math.max(1, leftMs));
  } else await condition(hasChanged);
}

async function untilTimeOrMessage(run: RunContext, until: number): Promise<void> {
  const hasChanged = (): boolean => isOther(run, { type: 'await-time', until });
  const summary = `wait until ${new Date(until).toISOString()}`;
  const timer = new CancellationScope();
  const waitMs = Math.max(1, until - Date.now());
  try {
    await Promise.race([timer.run(() => sleep(waitMs, { summary })), condition(hasChanged)]);
  } finally {
    timer.cancel();
  }
}
