import type { RunEvent } from '../events.js';
import { toWork, type FactOf } from '../facts.js';
import { isArchiveResult, isForked } from '../guards/recorded.js';
import { getInterruption } from '../work/interruption.js';
import { isObject, textField } from '../json.js';
import { type RunState } from '../state.js';
import { inTurn } from '../turn.js';
import { findWork, WORK } from '../work/work.js';
import { blockingProblem, blockWork, probeCanceled, unblocked } from './block.js';
import { callCanceled } from './calls.js';

const ARCHIVED: RunEvent = { type: 'work-ended', name: WORK.archive };
const FORKED: RunEvent = { type: 'work-ended', name: WORK.fork };

/** Returns the events of messages written to the archive, to the blob store, or to both. */
export function archived(
  _state: RunState,
  { task, result }: FactOf<'completed'>,
): readonly RunEvent[] {
  if (!isArchiveResult(result)) return [];
  const { archive, chunk } = isObject(task.input) ? task.input : {};
  const to = isObject(archive) ? Number(archive['to']) : 0;
  const count = isObject(chunk) ? Number(chunk['to']) - Number(chunk['from']) : 0;
  const stored = result.blob === undefined ? null : { blob: result.blob, count };
  return [ARCHIVED, { type: 'messages-archived', archived: to, chunk: stored }];
}

/**
 * Returns the events when the store is down. A run with room in its segment stays there, and a
 * compaction that needs the archive is abandoned. Otherwise, the run is blocked.
 */
export function archiveFailed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  const { input } = fact.task;
  const must = isObject(input) && input['must'] === true;
  const problem =
    must && getInterruption(state) === null ? blockingProblem(fact, ['storage']) : null;
  return problem === null ? archiveGivenUp(state, fact) : blockWork(state, fact, problem);
}

export function archiveCanceled(state: RunState, fact: FactOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : archiveGivenUp(state, fact);
}

function archiveGivenUp(
  state: RunState,
  { task, at }: Pick<FactOf<'failed'>, 'task' | 'at'>,
): readonly RunEvent[] {
  const cut = isObject(task.input) ? task.input['cut'] : undefined;
  if (typeof cut !== 'number') return [ARCHIVED, { type: 'segment-kept', at }];
  const isWanted = inTurn(state) && getInterruption(state) === null;
  return [
    ARCHIVED,
    ...(isWanted ? [{ type: 'transcript-compacted', cut, reply: null, at } as const] : []),
  ];
}

/** Returns the events of messages copied from another run before the first turn. */
export function copied(
  _state: RunState,
  { task, result }: FactOf<'completed'>,
): readonly RunEvent[] {
  if (!isForked(result)) return [];
  const { next, pinned = [], from: read, ...taken } = result;
  const run = isObject(task.input) ? textField(task.input, 'run') : '';
  const from = { run, runId: read.runId, at: next };
  return [FORKED, { type: 'run-forked', ...taken, from, pinned }];
}

export function copyFailed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  const problem = blockingProblem(fact, ['storage']);
  if (problem === null || getInterruption(state) !== null) return [FORKED];
  return blockWork(state, fact, problem);
}

export function copyCanceled(state: RunState, fact: FactOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : [FORKED];
}

/**
 * Returns the events after a blob check. Whether it succeeded or failed, the work that reads the
 * blob is attempted.
 */
export function blobChecked(
  state: RunState,
  { task }: Pick<FactOf<'completed'>, 'task'>,
): readonly RunEvent[] {
  const work = findWork(state, toWork(task)?.name ?? '');
  return work === undefined ? [] : [{ type: 'work-changed', work: unblocked(work) }];
}

/**
 * Returns the events of a canceled check. After an interruption, the work ends and a call gets its
 * result.
 */
export function checkCanceled(state: RunState, fact: FactOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : callCanceled(state, fact);
}
