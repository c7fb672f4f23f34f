import { MODEL_BLOCKS } from '../blocked.js';
import type { RunEvent } from '../events.js';
import { parseProblem } from '../failure.js';
import type { FactOf } from '../facts.js';
import { isReply } from '../guards/recorded.js';
import { interruptionOf } from '../work/interruption.js';
import { isObject } from '../json.js';
import type { RunState } from '../state.js';
import { WORK } from '../work/work.js';
import { blockingProblem, blockWork, probeCanceled } from './block.js';

const OVER: RunEvent = { type: 'work-ended', name: WORK.model };

/** The model replied. A reply that came in spite of an interruption counts, because it is paid for. */
export function modelReplied(
  _state: RunState,
  { task, result: reply, at }: FactOf<'completed'>,
): readonly RunEvent[] {
  if (!isReply(reply)) return [];
  const cut = cutIn(task.input);
  if (cut !== null) return [OVER, { type: 'compacted', cut, reply, at }];
  return [OVER, { type: 'model-replied', reply, at }];
}

/** A model call failed permanently. A failed closing call is not retried: code composes the answer. */
export function modelFailed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  if (interruptionOf(state) !== null) return [OVER];
  const { failure, task, at } = fact;
  const isClosing = isObject(task.input) && task.input['closing'] === true;
  const blocking = isClosing ? null : blockingProblem(fact, MODEL_BLOCKS);
  if (blocking !== null) return blockWork(state, fact, blocking);
  const cut = cutIn(task.input);
  if (cut !== null) return [OVER, { type: 'compacted', cut, reply: null, at }];
  const problem = parseProblem(failure.details);
  const reason = problem?.type === 'failed' ? problem.reason : 'error';
  const message = problem?.message ?? failure.message;
  const used = problem?.type === 'failed' && problem.used;
  return [OVER, { type: 'model-failed', reason, message, ...(used && { used }), at }];
}

export function modelCanceled(state: RunState, fact: FactOf<'canceled'>): readonly RunEvent[] {
  return interruptionOf(state) === null ? probeCanceled(state, fact) : [OVER];
}

function cutIn(input: unknown): number | null {
  const cut = isObject(input) ? input['compact'] : null;
  return typeof cut === 'number' ? cut : null;
}
