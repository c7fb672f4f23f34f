import { ContinueAsNew, upsertMemo, workflowInfo } from '@temporalio/workflow';
import type { ForkMessagesInput } from '../core/contract.js';
import { isForked, type ForkMessagesResult } from '../core/guards/recorded.js';
import type { ForkInput, RunInput } from '../core/input/input.js';
import { apply } from '../core/loop.js';
import { forkMessages, forkMessagesBlocked } from './activities.js';
import { checkedResult } from './activity-result.js';
import { DEFERRED } from './blocked-work.js';
import { retryInSegment } from './blocking.js';
import { continueAsNew } from './continue-as-new.js';
import { beginFailure, inputFailure, loadPinnedAgent, rootRun } from './load-agent.js';
import { inFlight, type RunContext } from './run-context.js';

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

/** Returns why the input field `called` is refused, or null. Only a calling workflow may set it. */
export function calledProblem({ called }: RunInput): string | null {
  if (called === undefined || workflowInfo().parent !== undefined) return null;
  return 'called: expected a calling workflow; leave it out';
}

/**
 * Pins the agent, and copies the messages of a run that this one forks. A cancel takes effect at any
 * moment: the run then ends like any run that is canceled before its first step.
 */
export async function beginRun(run: RunContext, input: RunInput): Promise<void> {
  if (input.contextBlob !== undefined && workflowInfo().parent === undefined) {
    throw inputFailure('contextBlob: only an agent that calls another gives it; give `context`');
  }
  try {
    let config = await loadPinnedAgent(run);
    while (config === DEFERRED) {
      await continueAsNew(run);
      config = await loadPinnedAgent(run);
    }
    const { contextBlob } = input;
    const called = contextBlob && { contextBlob: { ...contextBlob, root: rootRun() } };
    apply(run, { type: 'agent-loaded', config: { ...config, ...called } });
    if (input.tags !== undefined) upsertMemo({ tags: [...input.tags] });
    if (input.fork !== undefined) await fork(run, input.fork);
  } catch (error) {
    if (run.interruption === null || error instanceof ContinueAsNew) throw error;
  }
}

/** Puts the messages of another run before all messages of this one, and records the fork. */
async function fork(run: RunContext, { run: source, at }: ForkInput): Promise<void> {
  const { name, forkFrom } = run.state.config.definition;
  const input = {
    run: source,
    agent: name,
    ...(forkFrom && { forkFrom }),
    ...(at !== undefined && { at }),
  };
  const copied = await copyMessages(run, input);
  const { next, chunk, head, tokens, pinned = [], artifacts } = copied;
  const from = { run: source, runId: copied.from.runId, at: next };
  apply(run, {
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

async function copyMessages(
  run: RunContext,
  input: ForkMessagesInput,
): Promise<ForkMessagesResult> {
  const { resumes } = run;
  try {
    const copied = await inFlight(run, () => forkMessages(input));
    return checkedResult('forkMessages', isForked, copied);
  } catch (error) {
    const work = {
      name: 'fork',
      reasons: ['storage'],
      cancelable: true,
      attempt: async (blocked: 'storage' | undefined) => {
        const copied = await forkMessagesBlocked({ ...input, ...(blocked && { blocked }) });
        return checkedResult('forkMessages', isForked, copied);
      },
    } as const;
    return await retryInSegment(run, work, { error, resumes }).catch((failure: unknown) => {
      // A cancel is not a fault of the input.
      throw run.interruption === null ? beginFailure(failure) : failure;
    });
  }
}
