import { AGENT_BLOCKS } from '../blocked.js';
import { isLoaded } from '../definition/initial-config.js';
import type { RunEvent } from '../events.js';
import { parseProblem } from '../failure.js';
import type { FactOf } from '../facts.js';
import { isRunConfig } from '../guards/recorded.js';
import { getInterruption } from '../work/interruption.js';
import { isObject } from '../json.js';
import type { RunState } from '../state.js';
import { findWork, WORK, type Work } from '../work/work.js';
import { blockWork } from './block.js';

const OVER: RunEvent = { type: 'work-ended', name: WORK.agent };

/**
 * Returns the events of a loaded agent, at the start of the run or before a turn that requested a
 * refresh.
 */
export function agentLoaded(
  state: RunState,
  { result: config }: FactOf<'completed'>,
): readonly RunEvent[] {
  if (!isRunConfig(config)) return [];
  if (isLoaded(state)) return [OVER, { type: 'agent-refreshed', config }];
  const requested = (state.requestedLimits ?? []).filter(
    ({ limits }) => config.price !== null || !limitsCost(limits),
  );
  return [
    OVER,
    { type: 'agent-loaded', config },
    ...requested.flatMap(({ limits, decision }): readonly RunEvent[] => [
      { type: 'limits-set', limits },
      { type: 'decision-recorded', decision },
    ]),
  ];
}

/** Whether limits include one on money, which needs the model's price. */
export function limitsCost(limits: unknown): boolean {
  const { costUsd, run } = isObject(limits) ? limits : {};
  return [costUsd, isObject(run) ? run['costUsd'] : null].some((cost) => typeof cost === 'number');
}

/**
 * Returns the events of an agent that could not be loaded. The run waits for a worker that has the
 * agent, or for a store that accepts the run's context. A run that only requested a refresh keeps
 * its current definition.
 */
export function agentFailed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  const { failure, task } = fact;
  // The worker needs more time than the first attempt allows, so a longer attempt follows.
  if (failure.type === 'AgentNeedsTime') return [waiting(state, { slow: true })];
  const problem = parseProblem(failure.details);
  const isLocal = isObject(task.input) && task.input['local'] === true;
  // Another worker may have the agent.
  if (isLocal && problem?.type !== 'failed')
    return [waiting(state, problem === null ? {} : { missing: problem.message })];
  if (getInterruption(state) !== null) return endLoading(state);
  const name = state.config.definition.name;
  const missing = findWork(state, WORK.agent)?.missing;
  const lost = {
    type: 'blocked',
    reason: 'agent_missing',
    // If no other worker answered in time, the first worker's answer applies.
    message: missing ?? `agent: no worker has loaded "${name}" in time; start one that has it`,
  } as const;
  const found = problem ?? (failure.timedOut ? lost : null);
  const reasons: readonly string[] = isLoaded(state) ? ['storage'] : AGENT_BLOCKS;
  if (found?.type !== 'blocked' || !reasons.includes(found.reason)) return endLoading(state);
  return blockWork(state, fact, found);
}

export function agentCanceled(state: RunState): readonly RunEvent[] {
  const work = findWork(state, WORK.agent);
  if (getInterruption(state) !== null || work === undefined) return endLoading(state);
  return [waiting(state, {})];
}

/** Returns the events that end the run, or that keep its current definition. */
function endLoading(state: RunState): readonly RunEvent[] {
  return isLoaded(state) ? [OVER, { type: 'agent-refreshed', config: null }] : [OVER];
}

function waiting(state: RunState, learned: Pick<Work, 'missing' | 'slow'>): RunEvent {
  const begun: Work = findWork(state, WORK.agent) ?? { name: WORK.agent, phase: 'waiting' };
  const { resumed, block, ...work } = begun;
  const changed: Work = {
    ...work,
    ...learned,
    ...(block && !resumed && { block }),
    phase: 'waiting',
  };
  return { type: 'work-changed', work: changed };
}
