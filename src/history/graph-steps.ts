import type { GraphState, NodeVisits } from '../core/graph/graph-state.js';
import { isObject, type JsonObject } from '../core/json.js';
import type { ActionProgress, PlanProgress } from '../core/plan/progress.js';
import type { DurableStep } from './durable-events.js';

/** A run's place in its graph, and the progress of its plan. */
interface Progress {
  readonly graph: GraphState | undefined;
  readonly plan: PlanProgress | null;
}

/**
 * Adds the steps of a run in its graph between two states to those of its messages. Each step of a
 * plan comes between the beginning and the end of its node: a plan is made, and actions that had
 * begun end, before the run leaves that node; other changes of actions come after the run has
 * entered the next one. The last node of a turn ends before the turn does.
 */
export function withGraphSteps(
  messages: readonly DurableStep[],
  before: Progress,
  now: Progress,
): readonly DurableStep[] {
  const place = messages.findIndex(({ type }) => type === 'turn-ended');
  const end = messages[place];
  const output = end?.type === 'turn-ended' ? end.outcome.output : undefined;
  // The next turn may have begun since, with other values.
  const values = isObject(output) ? output : undefined;
  const { ended, begun } = nodeSteps(before.graph, now.graph, values);
  const { made, over, others } = planSteps(before.plan, now.plan);
  if (place < 0) return [...messages, ...made, ...over, ...ended, ...begun, ...others];
  const last = [...made, ...over, ...others, ...ended];
  return [...messages.slice(0, place), ...last, ...messages.slice(place), ...begun];
}

/** Steps of a run in its graph. */
interface NodeSteps {
  /** The nodes that the run has left. */
  readonly ended: readonly NodeEnded[];
  /** The node that it has entered; empty if it stayed where it was. */
  readonly begun: readonly DurableStep[];
}

type NodeEnded = Extract<DurableStep, { type: 'node-ended' }>;

/**
 * Returns the steps of a run in its graph between two states: the nodes that it left, with their
 * exits, and its current node. A node that takes no time, such as a `choose`, only ends. `values`:
 * the state's fields behind these nodes, if a turn has ended and another one has begun since.
 */
export function nodeSteps(
  before: GraphState | undefined,
  now: GraphState | undefined,
  values: JsonObject | undefined = now?.values,
): NodeSteps {
  if (now === undefined || now === before) return { ended: [], begun: [] };
  const { at } = now;
  const patch = changedFields(before?.values ?? {}, values ?? {});
  const left = before?.at?.node;
  const ended = now.visited
    .flatMap((visits) => exitsTaken(findVisits(before, visits.node), visits))
    // Nodes that take no time were passed after the one that did the work.
    .toSorted((one, other) => Number(other.node === left) - Number(one.node === left));
  const [first, ...passed] = ended;
  const isPatched = first?.node === left && Object.keys(patch).length > 0;
  const patched = first && isPatched ? [{ ...first, patch }, ...passed] : ended;
  const isNew = at !== null && !isSame(before?.at ?? null, at);
  return {
    ended: patched,
    begun: isNew ? [{ type: 'node-begun', node: at.node, visit: at.visit }] : [],
  };
}

/** Returns the fields that differ, with their new values. */
function changedFields(before: JsonObject, now: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(now).filter(
      ([field, value]) =>
        !Object.hasOwn(before, field) ||
        (before[field] !== value && JSON.stringify(before[field]) !== JSON.stringify(value)),
    ),
  );
}

function exitsTaken(
  before: NodeVisits | undefined,
  { node, taken, ms }: NodeVisits,
): readonly NodeEnded[] {
  return taken.flatMap(({ exit, count }) => {
    const known = before?.taken.find((one) => one.exit === exit)?.count ?? 0;
    const step: NodeEnded = { type: 'node-ended', node, exit, ms: ms - (before?.ms ?? 0) };
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
