import { ApplicationFailure } from '@temporalio/workflow';
import type { LoadAgentInput } from '../activities/contract.js';
import type { RunInput } from '../core/input.js';
import type { Outcome } from '../core/outcome.js';
import { nothingSpent, type RunConfig } from '../core/state.js';
import { loadAgentAnywhere, loadAgentHere, loadAgentPatiently } from './activities.js';
import { messageOf, needsTime, problemOf } from './problem.js';

/** A context above this size goes to the blob store once instead of travelling with every call. */
const INLINE_CONTEXT_CHARACTERS = 1_000;

/** Loads and pins the agent: here, within the first workflow task, else wherever it is known. */
export async function loadConfig(input: RunInput): Promise<RunConfig> {
  const { agent, limits = {}, context, depth, budget, args } = input;
  const large = context !== undefined && JSON.stringify(context).length > INLINE_CONTEXT_CHARACTERS;
  const wanted: LoadAgentInput = {
    agent,
    limits,
    ...(depth !== undefined && { depth }),
    ...(budget !== undefined && { budget }),
    ...(args !== undefined && { args }),
    ...(large && { context }),
  };
  try {
    return await loadAgentHere(wanted);
  } catch (error) {
    if (problemOf(error)?.type === 'failed') throw refused(error);
    if (needsTime(error)) return await loadPatiently(wanted);
  }
  try {
    return await loadAgentAnywhere(wanted);
  } catch (error) {
    if (needsTime(error)) return await loadPatiently(wanted);
    throw refused(error);
  }
}

/** Nothing is said or paid yet, so a server that cannot be had after some attempts ends the run. */
async function loadPatiently(wanted: LoadAgentInput): Promise<RunConfig> {
  try {
    return await loadAgentPatiently({ ...wanted, patient: true });
  } catch (error) {
    throw refused(error);
  }
}

/** The failure of a run that cannot begin, by what an activity said. */
export function refused(error: unknown): ApplicationFailure {
  return inputFailure(problemOf(error)?.message ?? messageOf(error));
}

/** The failure of a run that never began. */
export function inputFailure(problem: string): ApplicationFailure {
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
    error: problem,
  };
  return ApplicationFailure.create({
    type: 'AgentFailed',
    nonRetryable: true,
    message: `input: ${problem}`,
    details: [outcome],
  });
}
