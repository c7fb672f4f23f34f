import { upsertMemo, workflowInfo } from '@temporalio/workflow';
import type { ForkInput } from '../core/input/check-fork.js';
import { readStart, type Begun } from '../core/segments/start.js';
import { isLoaded } from '../core/definition/initial-config.js';
import { getInterruption } from '../core/work/interruption.js';
import { findWork, WORK } from '../core/work/work.js';
import { forkMessages, forkMessagesBlocked } from './activities.js';
import { startDeadlineTimer } from './deadline-timer.js';
import { beginFailure, inputFailure, loadPinnedAgent } from './load-agent.js';
import type { RunContext } from './run-context.js';
import { blobCheck, blockedField, activityStart, doWork } from './do-work.js';

/** Reads the arguments of this segment. Throws the failure of a run that refuses them. */
export function readSegmentArguments(input: unknown, carried: unknown): Begun {
  const { cronSchedule, retryPolicy, parent, continuedFromExecutionRunId } = workflowInfo();
  const start = {
    cronSchedule: cronSchedule ?? '',
    hasRetryPolicy: retryPolicy !== undefined,
    hasParent: parent !== undefined,
    isContinued: continuedFromExecutionRunId !== undefined,
  };
  const read = readStart(start, { input, carried });
  if ('problem' in read) throw inputFailure(read.problem);
  return read;
}

/**
 * Pins the agent, and copies the messages of a run that this one forks. A cancellation takes effect
 * at any time: the run then ends like any run canceled before its first step.
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

/** Copies another run's messages to the beginning of this one, and shows the fork in the memo. */
async function copyMessages(run: RunContext, { run: source, runId, at }: ForkInput): Promise<void> {
  const { name, forkFrom, graph } = run.state.config.definition;
  const input = {
    run: source,
    ...(runId !== undefined && { runId }),
    agent: name,
    ...(forkFrom && { forkFrom }),
    ...(at !== undefined && { at }),
    ...(graph?.historyTo && { latest: graph.historyTo.last }),
  };
  const failure = await doWork(run, {
    name: WORK.fork,
    activity: (step, work) => {
      if (step.as === 'check') return blobCheck(WORK.fork, step);
      const taskInput = { ...input, ...blockedField(step, ['storage']) };
      return activityStart(
        'forkMessages',
        taskInput,
        work === undefined ? forkMessages : forkMessagesBlocked,
      );
    },
  });
  const { forkedFrom } = run.state;
  if (forkedFrom !== undefined) upsertMemo({ forkedFrom: { ...forkedFrom } });
  // A cancellation is not a fault of the input.
  else if (getInterruption(run.state) === null && findWork(run.state, WORK.fork) === undefined) {
    throw beginFailure(failure);
  }
}
