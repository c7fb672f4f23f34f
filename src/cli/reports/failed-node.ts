import { forkableVisit } from '../../core/state/fork.js';
import type { RunState } from '../../core/state/state.js';
import { createStepEmitter } from '../../history/emit-steps.js';
import type { RunReading } from '../../history/read-run.js';

/**
 * Returns the node that has failed, or at which a failure or a limit ended the newest turn, if a run can be
 * forked at it; undefined if there is none.
 */
export function failedNode({ events, runId, view }: RunReading): string | undefined {
  const { state } = view;
  if (state?.graph === undefined) return undefined;
  const steps = events.flatMap(createStepEmitter(runId));
  const begun = steps.findLastIndex(({ type }) => type === 'turn-begun');
  const found = steps.slice(Math.max(begun, 0)).findLast(isFailed);
  return found?.type === 'node-ended' ? nodeToFork(state, found.node) : undefined;
}

/** Returns a node if a run can be forked at it; undefined if it cannot. */
export function nodeToFork(state: RunState, node: string | undefined): string | undefined {
  if (node === undefined) return undefined;
  return 'visit' in forkableVisit(state, { node }, () => undefined) ? node : undefined;
}

function isFailed(step: ReturnType<ReturnType<typeof createStepEmitter>>[number]): boolean {
  return step.type === 'node-ended' && ['failed', 'stopped'].includes(step.exit);
}
