import type { GraphState, NodeVisits } from '../core/graph/graph-state.js';
import type { ActionProgress, PlanProgress } from '../core/plan/progress.js';
import type { DurableStep } from './durable-events.js';

/** A run's place in its graph, and the progress of its plan. */
interface Progress {
  readonly graph: GraphState | undefined;
  readonly plan: PlanProgress | null;
}

/**
 * Returns the steps of a run in its graph between two states. Each step of a plan comes between the
 * beginning and the end of its node: a plan is made, and actions that had begun end, before the run
 * leaves that node; other changes of actions come after the run has entered the next one.
 */
export function graphSteps(before: Progress, now: Progress): readonly DurableStep[] {
  const { made, over, others } = planSteps(before.plan, now.plan);
  return [...made, ...over, ...nodeSteps(before.graph, now.graph), ...others];
}

/**
 * Returns the nodes that a run left between two states, with their exits, and its current node. A
 * node that takes no time, such as a `choose`, only ends.
 */
function nodeSteps(
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
 * Returns the steps of a run's plan between two states: the whole plan if it is new or changed, the
 * ends of actions that had begun, and the other changes.
 */
function planSteps(
  before: PlanProgress | null,
  now: PlanProgress | null,
): Readonly<Record<'made' | 'over' | 'others', readonly DurableStep[]>> {
  if (now === null) return { made: [], over: [], others: [] };
  const isKnown = before !== null && wordsOf(before) === wordsOf(now);
  const states = new Map(isKnown ? before.actions.map(({ id, state }) => [id, state]) : []);
  const stateBefore = (id: string): ActionProgress['state'] => states.get(id) ?? 'planned';
  const changed = now.actions.filter(({ id, state }) => stateBefore(id) !== state);
  const isOver = ({ id, state }: ActionProgress): boolean =>
    (state === 'done' || state === 'failed') && stateBefore(id) !== 'planned';
  const step = (action: ActionProgress): DurableStep => ({
    type: 'action-changed',
    action,
    done: now.done,
    total: now.actions.length,
  });
  return {
    made: isKnown ? [] : [{ type: 'plan-made', actions: now.actions }],
    over: changed.filter(isOver).map(step),
    others: changed.filter((action) => !isOver(action)).map(step),
  };
}

/** Returns the actions of a plan as text. */
function wordsOf({ actions }: PlanProgress): string {
  return JSON.stringify(actions.map(({ id, tool, shown }) => [id, tool, shown]));
}
