import type { RunEvent } from '../events.js';
import type { FactOf } from '../facts.js';
import { isFunctionResult } from '../guards/recorded.js';
import { interruptionOf } from '../work/interruption.js';
import type { RunState } from '../state.js';
import { blockingProblem, blockWork, probeCanceled } from './block.js';
import { askPerson, openCallOf, succeeded, type OpenCall } from './calls.js';

/** A tool's `verify` told what became of a call. If it cannot tell, a person decides. */
export function verified(state: RunState, fact: FactOf<'completed'>): readonly RunEvent[] {
  const open = openCallOf(state, fact);
  const { result: found } = fact;
  if (open === null || !isFunctionResult(found)) return [];
  const { work } = open;
  if (found.happened === false) {
    const { name, starts, key, approved } = work;
    const again = {
      name,
      ...(approved && { approved }),
      ...(starts !== undefined && { starts }),
      ...(key !== undefined && { key }),
    };
    return [{ type: 'work-changed', work: { ...again, retried: true, phase: 'waiting' } }];
  }
  if (found.happened === true && found.result.ok === true) {
    return succeeded(open, found.result, fact.at);
  }
  return askAfterVerify(open, fact.at);
}

export function verificationFailed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  const open = openCallOf(state, fact);
  if (open === null) return [];
  const problem = blockingProblem(fact, ['storage']);
  if (problem !== null && interruptionOf(state) === null) return blockWork(state, fact, problem);
  return askAfterVerify(open, fact.at);
}

export function verificationCanceled(
  state: RunState,
  fact: FactOf<'canceled'>,
): readonly RunEvent[] {
  return probeCanceled(state, fact);
}

function askAfterVerify(open: OpenCall, at: number): readonly RunEvent[] {
  return askPerson(open, open.work.unknown ?? '', at);
}
