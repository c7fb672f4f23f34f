import { MODEL_BLOCKS } from '../blocked.js';
import type { RunEvent } from '../events.js';
import { parsePayment, parseProblem } from '../failure.js';
import type { FactOf } from '../facts.js';
import { isReply } from '../guards/recorded.js';
import { getInterruption } from '../work/interruption.js';
import { isObject } from '../json.js';
import type { RunState } from '../state.js';
import { findWork, WORK } from '../work/work.js';
import { blockingProblem, blockWork, probeCanceled } from './block.js';

const OVER: RunEvent = { type: 'work-ended', name: WORK.model };

/**
 * Returns the events of a model's reply. A reply despite an interruption counts, because it is paid
 * for.
 */
export function modelReplied(
  _state: RunState,
  { task, result: reply, at }: FactOf<'completed'>,
): readonly RunEvent[] {
  if (!isReply(reply)) return [];
  const cut = cutIn(task.input);
  if (cut !== null) return [OVER, { type: 'transcript-compacted', cut, reply, at }];
  return [OVER, { type: 'model-replied', reply, at }];
}

/**
 * Returns the events of a permanently failed model call. A failed closing call is not retried: the
 * engine composes the answer.
 */
export function modelFailed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  const { failure, task, at } = fact;
  const used = usedIn(failure.details);
  if (getInterruption(state) !== null) return [OVER, ...used, ...refusedBefore(state)];
  const isClosing = isObject(task.input) && task.input['closing'] === true;
  const blocking = isClosing ? null : blockingProblem(fact, MODEL_BLOCKS);
  if (blocking !== null) return [...used, ...blockWork(state, fact, blocking)];
  const cut = cutIn(task.input);
  if (cut !== null) return [OVER, { type: 'transcript-compacted', cut, reply: null, at }];
  const problem = parseProblem(failure.details);
  const failed = problem?.type === 'failed' ? problem : undefined;
  if (failed?.limit !== undefined && !isClosing) {
    return [OVER, ...used, { type: 'limit-hit', limit: failed.limit }];
  }
  const reason = failed?.reason ?? 'error';
  const message = problem?.message ?? failure.message;
  const refused = failed?.refused && { refused: failed.refused };
  return [OVER, ...used, { type: 'model-failed', reason, message, at, ...refused }];
}

/**
 * Returns the events of a canceled model call. The paid replies of a decision function count and
 * are kept for a later attempt.
 */
export function modelCanceled(state: RunState, fact: FactOf<'cancelled'>): readonly RunEvent[] {
  const used = usedIn(fact.details);
  if (getInterruption(state) !== null) return [OVER, ...used, ...refusedBefore(state)];
  const { paid } = parsePayment(fact.details);
  return [...used, ...probeCanceled(state, fact, paid)];
}

/**
 * Returns the event that the provider has refused the newest messages, if that is why the call was
 * blocked when it was interrupted.
 */
function refusedBefore(state: RunState): readonly RunEvent[] {
  const isRefused = findWork(state, WORK.model)?.block?.reason === 'bad_request';
  return isRefused ? [{ type: 'messages-refused', refused: 'message' }] : [];
}

function usedIn(details: readonly unknown[] | undefined): readonly RunEvent[] {
  const { used } = parsePayment(details);
  return used === undefined ? [] : [{ type: 'tokens-used', used }];
}

function cutIn(input: unknown): number | null {
  const cut = isObject(input) ? input['compact'] : null;
  return typeof cut === 'number' ? cut : null;
}
