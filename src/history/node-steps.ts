import type { GraphState, NodeVisits } from '../core/graph/graph-state.js';
import type { DurableStep } from './durable-events.js';

/**
 * Returns the steps of a run in its graph between two states of it: the nodes that it has left, with
 * their exits, and the node that it is at now. A node that takes no time, such as a `choose`, only ends.
 */
export function nodeSteps(
  before: GraphState | undefined,
  now: GraphState | undefined,
): readonly DurableStep[] {
  if (now === undefined || now === before) return [];
  const left = now.visited.flatMap((visits) => exitsTaken(findVisits(before, visits.node), visits));
  const { at } = now;
  if (at === null || isSame(before?.at ?? null, at)) return left;
  return [...left, { type: 'node-begun', node: at.node, visit: at.visit }];
}

function exitsTaken(before: NodeVisits | undefined, { node, taken }: NodeVisits): DurableStep[] {
  return taken.flatMap(({ exit, count }) => {
    const known = before?.taken.find((one) => one.exit === exit)?.count ?? 0;
    const step: DurableStep = { type: 'node-ended', node, exit };
    return Array.from({ length: count - known }, () => step);
  });
}

function findVisits(graph: GraphState | undefined, node: string): NodeVisits | undefined {
  return graph?.visited.find((visits) => visits.node === node);
}

function isSame(before: GraphState['at'], now: NonNullable<GraphState['at']>): boolean {
  return before?.node === now.node && before.visit === now.visit;
}
