import { TOOL_BLOCKS } from '../blocked.js';
import type { RunEvent } from '../events.js';
import { parseProblem } from '../failure.js';
import type { FactOf } from '../facts.js';
import { isRetrieval } from '../guards/recorded.js';
import { interruptionOf } from '../work/interruption.js';
import type { RunState } from '../state.js';
import { WORK } from '../work/work.js';
import { blockingProblem, blockWork, probeCanceled } from './block.js';

const OVER: RunEvent = { type: 'work-ended', name: WORK.retrieve };

export function retrieved(
  _state: RunState,
  { result, at }: FactOf<'completed'>,
): readonly RunEvent[] {
  if (!isRetrieval(result)) return [];
  return [OVER, { type: 'documents-retrieved', documents: result.documents, at }];
}

/** A failed retrieval ends the turn, because its author does not want an answer without sources. */
export function retrievalFailed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  if (interruptionOf(state) !== null) return [OVER];
  const blocking = blockingProblem(fact, TOOL_BLOCKS);
  if (blocking !== null) return blockWork(state, fact, blocking);
  const { details, message: cause } = fact.failure;
  const message = parseProblem(details)?.message ?? `retrieve: ${cause}`;
  return [OVER, { type: 'retrieval-failed', message }];
}

export function retrievalCanceled(state: RunState, fact: FactOf<'canceled'>): readonly RunEvent[] {
  return interruptionOf(state) === null ? probeCanceled(state, fact) : [OVER];
}
