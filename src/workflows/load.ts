import { ApplicationFailure, workflowInfo } from '@temporalio/workflow';
import type { LoadAgentInput } from '../core/contract.js';
import { AGENT_BLOCKS, type AgentBlock } from '../core/blocked.js';
import type { RunInput } from '../core/input/input.js';
import type { Outcome } from '../core/outcome.js';
import { isRunConfig } from '../core/guards/recorded.js';
import { problemText } from '../core/text/format-value.js';
import { nothingSpent, type RunConfig } from '../core/state.js';
import {
  loadAgentAnywhere,
  loadAgentBlocked,
  loadAgentHere,
  loadAgentPatiently,
  loadAgentSomeday,
} from './activities.js';
import { mend, mendInPlace, type Blockable, type BlockedAt } from './blocking.js';
import { isLost, messageOf, needsTime, problemOf } from './problem.js';
import { fitting } from './calls/recorded-result.js';
import { inFlight, type Session } from './run-context.js';
import { takeUp, type Left } from './standing.js';

/** A context above this size goes to the blob store once instead of travelling with every call. */
const INLINE_CONTEXT_CHARACTERS = 1_000;
const NAME = 'agent';

/**
 * Loads the agent that a run pins at its start. While no worker knows it, or the store does not take
 * the run's context, the run is blocked, visibly, and goes on by itself when that is over. Returns `LEFT` where the segment is full meanwhile. Rejects
 * with the failure of a run that cannot begin, and with the cancellation.
 */
export async function pinAgent(session: Session): Promise<RunConfig | Left> {
  const left = takeUp(session, NAME);
  if (left !== undefined) return await untilKnown(session, left);
  const { resumes } = session;
  try {
    return await loadConfig(session);
  } catch (error) {
    return await untilKnown(session, { error, resumes });
  }
}

async function untilKnown(session: Session, from: BlockedAt): Promise<RunConfig | Left> {
  session.doing.set(NAME, `find agent ${session.input.agent}`);
  try {
    return await mend(session, loading(session, AGENT_BLOCKS), from);
  } catch (error) {
    throw session.interruption === null ? refused(error) : error;
  } finally {
    session.doing.delete(NAME);
  }
}

/**
 * Loads the newest form of the agent for a run that has one. Null where there is none; only a store
 * that does not take the run's context blocks the run, which stays in its segment meanwhile.
 */
export async function reloadAgent(session: Session): Promise<RunConfig | null> {
  const { resumes } = session;
  try {
    return await loadConfig(session);
  } catch (error) {
    const work = loading(session, ['storage'] as const);
    return await mendInPlace(session, work, { error, resumes }).catch(() => null);
  }
}

function loading<B extends AgentBlock>(
  session: Session,
  reasons: readonly B[],
): Blockable<B, RunConfig> {
  const { input } = session;
  const load = async (blocked: B | undefined): Promise<RunConfig> => {
    const wanted = { ...wantedOf(input), ...(blocked !== undefined && { blocked }) };
    try {
      if (blocked === 'storage') return await loadAgentBlocked({ ...wanted, patient: true });
      return await (blocked === undefined ? loadAgentAnywhere : loadAgentSomeday)(wanted);
    } catch (error) {
      if (!needsTime(error)) throw missing(error, input.agent);
      return await loadPatiently(session, wanted);
    }
  };
  return {
    name: NAME,
    reasons,
    breakable: true,
    attempt: async (blocked) => fitting('loadAgent', isRunConfig, await load(blocked)),
  };
}

/** Loads the agent once: here, within the first workflow task, else wherever it is known. */
async function loadConfig(session: Session): Promise<RunConfig> {
  const { input } = session;
  const wanted = wantedOf(input);
  let here: unknown;
  try {
    // Never broken off: it takes a moment, and a run that is cancelled says of which agent it was.
    return fitting('loadAgent', isRunConfig, await loadAgentHere(wanted));
  } catch (error) {
    if (problemOf(error)?.type === 'failed') throw error;
    if (needsTime(error)) return await loadPatiently(session, wanted);
    here = error;
  }
  try {
    const config = await inFlight(session, () => loadAgentAnywhere(wanted));
    return fitting('loadAgent', isRunConfig, config);
  } catch (error) {
    if (needsTime(error)) return await loadPatiently(session, wanted);
    // Where no other worker has answered in time, this one's answer holds.
    throw isLost(error) && problemOf(here) !== null ? here : missing(error, input.agent);
  }
}

/** Nothing is said or paid yet, so a server that cannot be had after some attempts ends the run. */
async function loadPatiently(session: Session, wanted: LoadAgentInput): Promise<RunConfig> {
  const config = await inFlight(session, () => loadAgentPatiently({ ...wanted, patient: true }));
  return fitting('loadAgent', isRunConfig, config);
}

function wantedOf({ agent, limits = {}, context, depth, budget, args }: RunInput): LoadAgentInput {
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

/** Id of the run above all callers of this one; its own where nobody calls it. */
export function rootRun(): string {
  const { root, workflowId } = workflowInfo();
  return root?.workflowId ?? workflowId;
}

/** No worker has answered in time: that blocks the run like an agent that none of them knows. */
function missing(error: unknown, agent: string): unknown {
  if (problemOf(error) !== null || !isLost(error)) return error;
  const message = `agent: no worker has loaded "${agent}" in time; start one that has it`;
  return ApplicationFailure.create({
    type: 'AgentUnknown',
    nonRetryable: true,
    message,
    details: [{ type: 'blocked', reason: 'agent_missing', message }],
  });
}

/** The failure of a run that cannot begin, by what an activity said. */
export function refused(error: unknown): ApplicationFailure {
  return inputFailure(problemOf(error)?.message ?? messageOf(error));
}

/** The failure of a run that never began. */
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
