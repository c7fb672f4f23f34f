import { upsertMemo, workflowInfo } from '@temporalio/workflow';
import type { ForkInput, RunInput } from '../core/input/input.js';
import { isLoaded } from '../core/definition/initial-config.js';
import { interruptionOf } from '../core/work/interruption.js';
import { findWork, WORK } from '../core/work/work.js';
import { forkMessages, forkMessagesBlocked } from './activities.js';
import { startDeadlineTimer } from './deadline-timer.js';
import { beginFailure, loadPinnedAgent } from './load-agent.js';
import type { RunContext } from './run-context.js';
import { blobCheck, blockedField, startable, tend } from './tend.js';

/**
 * Returns why this run may not begin as it was started, or null. With a cron schedule or a retry
 * policy, the server starts the workflow again with its starter's arguments, and the run could not
 * tell them from its own state.
 */
export function startProblem(): string | null {
  const { cronSchedule, retryPolicy } = workflowInfo();
  if (cronSchedule) {
    return `cronSchedule: expected none, got ${JSON.stringify(cronSchedule)}; use a Temporal schedule that starts the agent`;
  }
  if (retryPolicy === undefined) return null;
  return 'retryPolicy: expected none; a run retries by itself, and a Temporal schedule starts it again at set times';
}

/** Returns why the input is refused in a run's first segment, or null. Only a calling workflow sets these fields. */
export function inputProblem({ called, contextBlob }: RunInput): string | null {
  if (workflowInfo().parent !== undefined) return null;
  if (called !== undefined) return 'called: expected a calling workflow; leave it out';
  if (contextBlob === undefined) return null;
  return 'contextBlob: only an agent that calls another gives it; give `context`';
}

/**
 * Pins the agent, and copies the messages of a run that this one forks. A cancel takes effect at any
 * moment: the run then ends like any run that is canceled before its first step.
 */
export async function loadRun(run: RunContext): Promise<void> {
  const { tags, fork } = run.input;
  if (!isLoaded(run.state)) {
    await loadPinnedAgent(run);
    if (!isLoaded(run.state)) return;
    if (tags !== undefined) upsertMemo({ tags: [...tags] });
    startDeadlineTimer(run);
  }
  if (fork !== undefined && run.state.forks) await copyMessages(run, fork);
}

/** Puts the messages of another run before all messages of this one, and shows the fork in the memo. */
async function copyMessages(run: RunContext, { run: source, at }: ForkInput): Promise<void> {
  const { name, forkFrom } = run.state.config.definition;
  const input = {
    run: source,
    agent: name,
    ...(forkFrom && { forkFrom }),
    ...(at !== undefined && { at }),
  };
  const failure = await tend(run, {
    name: WORK.fork,
    activity: (step, work) => {
      if (step.as === 'check') return blobCheck(WORK.fork, step);
      const given = { ...input, ...blockedField(step, ['storage']) };
      return startable(
        'forkMessages',
        given,
        work === undefined ? forkMessages : forkMessagesBlocked,
      );
    },
  });
  const { forkedFrom } = run.state;
  if (forkedFrom !== undefined) upsertMemo({ forkedFrom: { ...forkedFrom } });
  // A cancel is not a fault of the input.
  else if (interruptionOf(run.state) === null && findWork(run.state, WORK.fork) === undefined) {
    throw beginFailure(failure);
  }
}
