import { nameArtifacts } from '../artifacts/artifacts.js';
import { withTurn } from '../change.js';
import { currentNode } from '../graph/node-tool.js';
import { keepsEarlierMeaning, type RunState } from '../state.js';
import { getOpenBatch } from '../turn.js';
import { findWork, hasBegun, withoutWork, type Work } from '../work/work.js';
import { releaseReadyCalls } from './plan-batch.js';

/**
 * Releases the actions of a plan whose dependencies have finished, and ends those that can no
 * longer run.
 */
export function advancePlan(state: RunState): RunState {
  const node = currentNode(state);
  if (node?.kind !== 'execute') return state;
  // Actions refer to artifacts by name, so names are assigned without waiting for earlier actions.
  const named = nameArtifacts(state, getOpenBatch(state)?.calls.length);
  const batch = getOpenBatch(named);
  if (batch === null) return state;
  const { onFailedDependency: onFailed } = node;
  const advanced = releaseReadyCalls(batch, {
    onFailed,
    earlier: keepsEarlierMeaning(state, {}),
    hasBegun: ({ id }) => isUnderWay(findWork(named, id)),
  });
  // A call with a result needs no decision.
  const over = advanced.calls.filter(
    (_, index) => advanced.results[index] !== null && batch.results[index] === null,
  );
  const withoutOver = over.reduce((before, { id }) => withoutWork(before, id), named);
  return withTurn(withoutOver, { phase: { type: 'acting', batch: advanced } });
}

/** Whether a call has begun. One that only waits for a decision has not. */
function isUnderWay(work: Work | undefined): boolean {
  return work !== undefined && (work.phase === 'in-flight' || hasBegun(work));
}
