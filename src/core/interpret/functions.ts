import { TOOL_BLOCKS } from '../blocked.js';
import type { RunEvent } from '../events.js';
import { parseProblem } from '../failure.js';
import type { FactOf } from '../facts.js';
import { isRetrieval, isFunctionResult } from '../guards/recorded.js';
import { getInterruption } from '../work/interruption.js';
import type { RunState } from '../state.js';
import { WORK } from '../work/work.js';
import { blockingProblem, blockWork, probeCanceled } from './block.js';
import type { AttemptReport } from '../report.js';
import { askForOutcome, openCallOf, succeeded, type OpenCall } from './calls.js';

// How the activities end that call the author's `retrieve`, `remember`, and `verify`.

const RETRIEVED: RunEvent = { type: 'work-ended', name: WORK.retrieve };

export function retrieved(
  _state: RunState,
  { result, at }: FactOf<'completed'>,
): readonly RunEvent[] {
  if (!isRetrieval(result)) return [];
  return [RETRIEVED, { type: 'documents-retrieved', documents: result.documents, at }];
}

/** A failed retrieval ends the turn, because its author does not want an answer without sources. */
export function retrievalFailed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  if (getInterruption(state) !== null) return [RETRIEVED];
  const blocking = blockingProblem(fact, TOOL_BLOCKS);
  if (blocking !== null) return blockWork(state, fact, blocking);
  const { details, message: cause } = fact.failure;
  const message = parseProblem(details)?.message ?? `retrieve: ${cause}`;
  return [RETRIEVED, { type: 'retrieval-failed', message }];
}

export function retrievalCanceled(state: RunState, fact: FactOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : [RETRIEVED];
}

/** The turn is remembered, or a cancel of the run has kept it from that. */
export function remembered(reports: readonly AttemptReport[] = []): readonly RunEvent[] {
  return [
    { type: 'work-ended', name: WORK.remember },
    { type: 'turn-remembered', reports },
  ];
}

/** The outcome stands, whatever becomes of the memory, so a failure is only reported. */
export function notRemembered({ failure, at }: FactOf<'failed'>): readonly RunEvent[] {
  const { message: cause, details } = failure;
  const lost = { type: 'remember_failed', attempt: 1, waitMs: 0, at, message: cause.slice(0, 300) };
  return remembered(parseProblem(details)?.reports ?? [lost]);
}

/** A tool's `verify` reported whether a call happened. If it does not know, a person decides. */
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
  if (problem !== null && getInterruption(state) === null) return blockWork(state, fact, problem);
  return askAfterVerify(open, fact.at);
}

export function verificationCanceled(
  state: RunState,
  fact: FactOf<'cancelled'>,
): readonly RunEvent[] {
  return probeCanceled(state, fact);
}

function askAfterVerify(open: OpenCall, at: number): readonly RunEvent[] {
  return askForOutcome(open, open.work.unknown ?? '', at);
}
