import { ApplicationFailure, workflowInfo } from '@temporalio/workflow';
import { AGENT_BLOCKS } from '../core/blocked.js';
import type { LoadAgentInput } from '../core/contract.js';
import type { RunInput } from '../core/input/input.js';
import { isLoaded } from '../core/definition/initial-config.js';
import { getInterruption } from '../core/work/interruption.js';
import type { Outcome } from '../core/outcome.js';
import { nothingSpent } from '../core/turn.js';
import { problemText } from '../core/text/format-value.js';
import { findWork, WORK } from '../core/work/work.js';
import {
  loadAgentOnAnyWorker,
  loadAgentBlocked,
  loadAgentLocally,
  loadAgentWithMcp,
  loadAgentWhenAvailable,
} from './activities.js';
import { activityProblem, failureFact, failureMessage } from './activity-result.js';
import { recordNow, type RunContext } from './run-context.js';
import { blobCheck, blockedField, activityStart, doWork } from './do-work.js';

/**
 * Maximum characters of an inline context. A larger one is offloaded once instead of being sent
 * with every call.
 */
const INLINE_CONTEXT_CHARACTERS = 1_000;

/**
 * Loads the agent that a run pins at its start. The run is visibly blocked while no worker has the
 * agent or the store refuses the run's context. Returns early if the segment is full or the run is
 * interrupted. Rejects with the failure of a run that cannot begin.
 */
export async function loadPinnedAgent(run: RunContext): Promise<void> {
  const failure = await loadAgent(run);
  if (isLoaded(run.state) || getInterruption(run.state) !== null) return;
  if (findWork(run.state, WORK.agent) === undefined) throw beginFailure(failure);
}

/**
 * Loads the newest definition of a run's agent. The run keeps its current definition if no worker
 * has the agent. Only a store that refuses the run's context blocks the run, which then stays in
 * its segment.
 */
export async function reloadAgent(run: RunContext): Promise<void> {
  await loadAgent(run);
}

/** Loads the agent on this worker in the first workflow task, or else on any worker that has it. */
async function loadAgent(run: RunContext): Promise<unknown> {
  const request = loadInput(run.input, isLoaded(run.state));
  let failure: unknown = null;
  if (findWork(run.state, WORK.agent) === undefined) {
    failure = await loadLocally(run, request);
    if (findWork(run.state, WORK.agent) === undefined) return failure;
  }
  return await doWork(run, {
    name: WORK.agent,
    doing: `find agent ${run.input.agent}`,
    activity: (step, work) => {
      if (step.as === 'check') return blobCheck(WORK.agent, step);
      const input = { ...request, ...blockedField(step, AGENT_BLOCKS) };
      const slowInput = { ...input, withMcp: true as const };
      if (input.blocked === 'storage')
        return activityStart('loadAgent', slowInput, loadAgentBlocked);
      // No model call has been paid for yet, so an MCP server that stays down ends the run after
      // some attempts.
      if (work?.slow) return activityStart('loadAgent', slowInput, loadAgentWithMcp);
      const load = input.blocked === undefined ? loadAgentOnAnyWorker : loadAgentWhenAvailable;
      return activityStart('loadAgent', input, load);
    },
  });
}

/**
 * Loads the agent on this worker. It is never interrupted, because it is quick and the outcome of a
 * canceled run names its agent.
 */
async function loadLocally(run: RunContext, request: LoadAgentInput): Promise<unknown> {
  const task = { activity: 'loadAgent', input: { local: true } };
  try {
    const result = await loadAgentLocally(request);
    recordNow(run, { type: 'completed', task, result });
    return null;
  } catch (error) {
    recordNow(run, failureFact(task, error));
    return error;
  }
}

function loadInput(
  { agent, limits = {}, context, depth, budget, args, prompt, promptArgs, rules, called }: RunInput,
  hasAgent: boolean,
): LoadAgentInput {
  const large = context !== undefined && JSON.stringify(context).length > INLINE_CONTEXT_CHARACTERS;
  return {
    agent,
    limits,
    ...(depth !== undefined && { depth }),
    ...(budget !== undefined && { budget }),
    ...(args !== undefined && { args }),
    ...(called?.span !== undefined && { span: called.span }),
    ...(prompt !== undefined &&
      !hasAgent && { prompt: { prompt, ...(promptArgs && { args: promptArgs }) } }),
    ...(rules !== undefined && !hasAgent && { rules }),
    ...(large && { context, root: rootRun() }),
  };
}

/** Returns the id of the root of all callers; the run's own id if no run calls it. */
export function rootRun(): string {
  const { root, workflowId } = workflowInfo();
  return root?.workflowId ?? workflowId;
}

/** Returns the failure of a run that cannot begin because an activity failed. */
export function beginFailure(error: unknown): ApplicationFailure {
  return inputFailure(activityProblem(error)?.message ?? failureMessage(error));
}

/** Returns the failure of a run that cannot begin, with an outcome that states the problem. */
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
