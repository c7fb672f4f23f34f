import { nameArtifacts } from '../artifacts/artifacts.js';
import { withTurn } from '../change.js';
import { currentNode } from '../graph/node-tool.js';
import type { RunState } from '../state.js';
import { batchOf } from '../turn.js';
import { findWork, hasBegun, withoutWork, type Work } from '../work/work.js';
import { advancePlan } from './plan-batch.js';

/**
 * Releases the actions of a plan whose dependencies have finished, and ends those that can no
 * longer run.
 */
export function settlePlan(state: RunState): RunState {
  const node = currentNode(state);
  if (node?.kind !== 'execute') return state;
  // Actions refer to artifacts by name, so names are assigned without waiting for earlier actions.
  const named = nameArtifacts(state, batchOf(state)?.calls.length);
  const batch = batchOf(named);
  if (batch === null) return state;
  const { onFailedDependency: onFailed } = node;
  const settled = advancePlan(batch, {
    onFailed,
    hasBegun: ({ id }) => isUnderWay(findWork(named, id)),
  });
  // A call with a result needs no decision.
  const over = settled.calls.filter(
    (_, index) => settled.results[index] !== null && batch.results[index] === null,
  );
  const asked = over.reduce((before, { id }) => withoutWork(before, id), named);
  return withTurn(asked, { phase: { type: 'acting', batch: settled } });
}

/** Whether a call has begun. One that only waits for a decision has not. */
function isUnderWay(work: Work | undefined): boolean {
  return work !== undefined && (work.phase === 'in-flight' || hasBegun(work));
}
