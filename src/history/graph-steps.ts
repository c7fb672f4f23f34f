import type { GraphState, NodeVisits } from '../core/graph/graph-state.js';
import type { PlanProgress } from '../core/plan/progress.js';
import type { DurableStep } from './durable-events.js';

/**
 * Returns the steps of a run in its graph between two states: the nodes that it left, with their
 * exits, and its current node. A node that takes no time, such as a `choose`, only ends.
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

/**
 * Returns the steps of a run's plan between two states: the whole plan if it is new or changed,
 * then each action that made progress.
 */
export function planSteps(
  before: PlanProgress | null,
  now: PlanProgress | null,
): readonly DurableStep[] {
  if (now === null) return [];
  const isKnown = before !== null && wordsOf(before) === wordsOf(now);
  const states = new Map(isKnown ? before.actions.map(({ id, state }) => [id, state]) : []);
  const changed = now.actions.filter(({ id, state }) => (states.get(id) ?? 'planned') !== state);
  const { length: total } = now.actions;
  return [
    ...(isKnown ? [] : [{ type: 'plan-made', actions: now.actions } as const]),
    ...changed.map((action): DurableStep => ({
      type: 'action-changed',
      action,
      done: now.done,
      total,
    })),
  ];
}

/** Returns the actions of a plan as text. */
function wordsOf({ actions }: PlanProgress): string {
  return JSON.stringify(actions.map(({ id, tool, shown }) => [id, tool, shown]));
}
