import { ApplicationFailure, workflowInfo } from '@temporalio/workflow';
import { AGENT_BLOCKS, type AgentBlock } from '../core/blocked.js';
import type { LoadAgentInput } from '../core/contract.js';
import { isRunConfig } from '../core/guards/recorded.js';
import type { RunInput } from '../core/input/input.js';
import type { Outcome } from '../core/outcome.js';
import { nothingSpent, type RunConfig } from '../core/state.js';
import { problemText } from '../core/text/format-value.js';
import {
  loadAgentAnywhere,
  loadAgentBlocked,
  loadAgentHere,
  loadAgentPatiently,
  loadAgentSomeday,
} from './activities.js';
import {
  activityProblem,
  checkedResult,
  failureMessage,
  isLost,
  needsTime,
} from './activity-result.js';
import { takeDeferred, type Deferred } from './blocked-work.js';
import { retryInSegment, retryUntilUnblocked, type Blockable, type BlockedAt } from './blocking.js';
import { inFlight, type RunContext } from './run-context.js';

/** A larger context is offloaded to the blob store once, instead of being sent with every call. */
const INLINE_CONTEXT_CHARACTERS = 1_000;
const NAME = 'agent';

/**
 * Loads the agent that a run pins at its start. The run is blocked, visibly, while no worker has the
 * agent or the store refuses the run's context. Returns `DEFERRED` if the segment is full before that.
 * Rejects with the failure of a run that cannot begin, and with the cancellation.
 */
export async function loadPinnedAgent(run: RunContext): Promise<RunConfig | Deferred> {
  const deferred = takeDeferred(run, NAME);
  if (deferred !== undefined) return await untilLoaded(run, deferred);
  const { resumes } = run;
  try {
    return await loadConfig(run);
  } catch (error) {
    return await untilLoaded(run, { error, resumes });
  }
}

async function untilLoaded(run: RunContext, from: BlockedAt): Promise<RunConfig | Deferred> {
  run.doing.set(NAME, `find agent ${run.input.agent}`);
  try {
    return await retryUntilUnblocked(run, loading(run, AGENT_BLOCKS), from);
  } catch (error) {
    throw run.interruption === null ? beginFailure(error) : error;
  } finally {
    run.doing.delete(NAME);
  }
}

/**
 * Loads the newest definition of the agent for a run that has one. Returns null if no worker has it.
 * Only a store that refuses the run's context blocks the run, which then stays in its segment.
 */
export async function reloadAgent(run: RunContext): Promise<RunConfig | null> {
  const { resumes } = run;
  try {
    return await loadConfig(run);
  } catch (error) {
    const work = loading(run, ['storage'] as const);
    return await retryInSegment(run, work, { error, resumes }).catch(() => null);
  }
}

function loading<B extends AgentBlock>(
  run: RunContext,
  reasons: readonly B[],
): Blockable<B, RunConfig> {
  const { input } = run;
  const load = async (blocked: B | undefined): Promise<RunConfig> => {
    const request = { ...loadInput(input), ...(blocked !== undefined && { blocked }) };
    try {
      if (blocked === 'storage') return await loadAgentBlocked({ ...request, patient: true });
      return await (blocked === undefined ? loadAgentAnywhere : loadAgentSomeday)(request);
    } catch (error) {
      if (!needsTime(error)) throw missingAgent(error, input.agent);
      return await loadPatiently(run, request);
    }
  };
  return {
    name: NAME,
    reasons,
    cancelable: true,
    attempt: async (blocked) => checkedResult('loadAgent', isRunConfig, await load(blocked)),
  };
}

/** Loads the agent once: on this worker in the first workflow task, else on any worker that has it. */
async function loadConfig(run: RunContext): Promise<RunConfig> {
  const { input } = run;
  const request = loadInput(input);
  let localError: unknown;
  try {
    // Never interrupted: it takes a moment, and the outcome of a canceled run names its agent.
    return checkedResult('loadAgent', isRunConfig, await loadAgentHere(request));
  } catch (error) {
    if (activityProblem(error)?.type === 'failed') throw error;
    if (needsTime(error)) return await loadPatiently(run, request);
    localError = error;
  }
  try {
    const config = await inFlight(run, () => loadAgentAnywhere(request));
    return checkedResult('loadAgent', isRunConfig, config);
  } catch (error) {
    if (needsTime(error)) return await loadPatiently(run, request);
    // If no other worker has answered in time, this worker's answer holds.
    const useLocal = isLost(error) && activityProblem(localError) !== null;
    throw useLocal ? localError : missingAgent(error, input.agent);
  }
}

/** Nothing is paid yet, so an MCP server that stays down after some attempts ends the run. */
async function loadPatiently(run: RunContext, request: LoadAgentInput): Promise<RunConfig> {
  const config = await inFlight(run, () => loadAgentPatiently({ ...request, patient: true }));
  return checkedResult('loadAgent', isRunConfig, config);
}

function loadInput({ agent, limits = {}, context, depth, budget, args }: RunInput): LoadAgentInput {
  const large = context !== undefined && JSON.stringify(context).length > INLINE_CONTEXT_CHARACTERS;
  return {
    agent,
    limits,
    ...(depth !== undefined && { depth }),
    ...(budget !== undefined && { budget }),
    ...(args !== undefined && { args }),
    ...(large && { context, root: rootRun() }),
  };
}

/** Returns the id of the run above all callers of this one; its own id if no run calls it. */
export function rootRun(): string {
  const { root, workflowId } = workflowInfo();
  return root?.workflowId ?? workflowId;
}

/** A timeout blocks the run in the same way as an agent that no worker has. */
function missingAgent(error: unknown, agent: string): unknown {
  if (activityProblem(error) !== null || !isLost(error)) return error;
  const message = `agent: no worker has loaded "${agent}" in time; start one that has it`;
  return ApplicationFailure.create({
    type: 'AgentUnknown',
    nonRetryable: true,
    message,
    details: [{ type: 'blocked', reason: 'agent_missing', message }],
  });
}

/** Returns the failure of a run that cannot begin because an activity failed. */
export function beginFailure(error: unknown): ApplicationFailure {
  return inputFailure(activityProblem(error)?.message ?? failureMessage(error));
}

/** Returns the failure of a run that cannot begin, with an outcome that says so. */
export function inputFailure(problem: string): ApplicationFailure {
  const error = problemText(problem);
  const { usage } = nothingSpent(null);
  const outcome: Outcome = {
    status: 'failed',
    reason: 'input',
    answer: null,
    output: null,
    steps: 0,
    toolCalls: 0,
    usage,
    segments: 1,
    error,
  };
  return ApplicationFailure.create({
    type: 'AgentFailed',
    nonRetryable: true,
    message: `input: ${error}`,
    details: [outcome],
  });
}
