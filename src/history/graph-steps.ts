import type { GraphDefinition } from '../core/definition/graph-definition.js';
import { savedItems } from '../core/graph/items.js';
import { planIn } from '../core/plan/plan.js';
import { PLAN_REPORT } from '../core/plan/results.js';
import {
  type ActionProgress,
  type PlanProgress,
  calledFor,
  planProgress,
} from '../core/run/details.js';
import type { GraphState, NodeVisits, RunState } from '../core/state/state.js';
import {
  type CallProgress,
  findNode,
  graphOf,
  itemProgress,
  nodeCallId,
} from '../core/state/turn-definition.js';
import { type JsonObject, isObject, textField } from '../core/text/json.js';
import { shorten } from '../core/text/text.js';
import { nodeFailureText } from '../core/transcript/call-result.js';
import type { Outcome } from '../core/transcript/outcome.js';
import type { DurableStep } from './durable-steps.js';
import { type Projection, visitKey } from './projection.js';
import type { States } from './reader/run-view.js';

/** Steps of a run in its graph. */
interface NodeSteps {
  /** The nodes that the run has left. */
  readonly ended: readonly NodeEnded[];
  /** The node that it has entered; empty if it stayed where it was. */
  readonly begun: readonly DurableStep[];
}

type NodeEnded = Extract<DurableStep, { type: 'node-ended' }>;

/**
 * Returns the steps of a run in its graph that an event of the run means: the nodes that it left, with
 * their exits, and its current node. A node that takes no time, such as a `choose`, only ends. A turn
 * that ends by no exit interrupts its node.
 */
export function nodeSteps(
  { before, after }: States,
  { visits, state }: Pick<Projection, 'visits' | 'state'>,
): NodeSteps {
  const [was, now] = [before.graph, after.graph];
  const { phase } = after.turn;
  const outcome = phase.type === 'over' && phase !== before.turn.phase ? phase.outcome : null;
  if (now === undefined || (now === was && outcome === null)) return { ended: [], begun: [] };
  const { at, values } = now;
  const left = was?.at ?? null;
  const [first, ...passed] = inOrder(
    now.visited.flatMap((of) =>
      withWork(exitsTaken(findVisits(was, of.node), of), of, { at, visits }),
    ),
    { from: left?.node, graph: graphOf(after) },
  );
  const patch = changedFields(was?.values ?? {}, values);
  const own = first !== undefined &&
    first.node === left?.node && {
      ...(Object.keys(patch).length > 0 && { patch }),
      ...itemsOf(after, left.node, values),
      ...deciderAt(state ?? after, left),
      ...actionsOf(after, first, values),
    };
  const ended = first === undefined ? [] : [{ ...first, ...own }, ...passed];
  if (outcome !== null) {
    const isInterrupted = outcome.status !== 'completed' && at !== null;
    return {
      ended: isInterrupted ? [...ended, interrupted(at, outcome, visits)] : ended,
      begun: [],
    };
  }
  const isNew = at !== null && !isSame(left, at);
  return { ended, begun: isNew ? [{ type: 'node-begun', node: at.node, visit: at.visit }] : [] };
}

/**
 * Whether a step follows those of the nodes: it adds the message of this node to the graph's model, such
 * as the report on a plan, or the answer of a graph, which no node has said.
 */
export function isOfNode(step: DurableStep, name: string | undefined): boolean {
  if (step.type !== 'message-added') return false;
  const { message } = step;
  const { origin } = message;
  if (message.role === 'assistant') return origin === 'graph' && message.node === undefined;
  if (name === undefined) return false;
  return origin === 'graph'
    ? message.node === name
    : origin === 'perdure' && message.text.startsWith(PLAN_REPORT);
}

type Place = NonNullable<GraphState['at']>;

function interrupted(
  { node, visit }: Place,
  { status }: Outcome,
  visits: Projection['visits'],
): NodeEnded {
  const work = doneIn(visits, { node, visit });
  return { type: 'node-ended', node, exit: status, ms: 0, ...work, interrupted: true };
}

/**
 * Returns the ends of nodes in the order in which the run passed them: each exit leads to the next
 * node. `from`: the node that the run was at; undefined before its first one.
 */
function inOrder(
  ended: readonly NodeEnded[],
  {
    from,
    graph,
  }: { readonly from: string | undefined; readonly graph: GraphDefinition | undefined },
): readonly NodeEnded[] {
  const rest = [...ended];
  const passed: NodeEnded[] = [];
  let next = from ?? graph?.start;
  for (;;) {
    const found = rest.findIndex(({ node }) => node === next);
    const [step] = rest.splice(Math.max(found, 0), 1);
    if (step === undefined) return passed;
    passed.push(step);
    const node = graph && findNode(graph, step.node);
    next = node?.exits.find(({ name }) => name === step.exit)?.to;
  }
}

/** Returns who decided about the question of a node's visit; nothing if no person did. */
function deciderAt({ decisions }: RunState, at: Place): Pick<NodeEnded, 'by' | 'door'> {
  const begin = `${nodeCallId(at.node, { at })}_`;
  const { by, door } =
    decisions?.findLast(
      ({ what, call = '', as, refused }) =>
        what === 'resolve' && refused === undefined && as !== 'expired' && call.startsWith(begin),
    ) ?? {};
  return { ...(by !== undefined && { by }), ...(door !== undefined && { door }) };
}

/** Returns the actions that a person has chosen, or that there were none to execute. */
function actionsOf(
  state: RunState,
  { node: name, exit }: NodeEnded,
  values: JsonObject,
): Pick<NodeEnded, 'actions'> {
  const graph = graphOf(state);
  const node = graph && findNode(graph, name);
  if ((node?.kind !== 'confirm' && node?.kind !== 'execute') || node.plan === undefined) return {};
  const actions = planIn(values, node.plan).actions.map(({ id }) => id);
  const isShown = node.kind === 'confirm' ? exit === 'some' : actions.length === 0;
  return isShown ? { actions } : {};
}

/** Returns how many items of an `each` there were, by the field that it saves; nothing for any other node. */
function itemsOf(state: RunState, name: string, values: JsonObject): Pick<NodeEnded, 'items'> {
  const graph = graphOf(state);
  const saved = savedItems(graph && findNode(graph, name), values);
  if (saved === null) return {};
  const done = saved.filter((item) => isObject(item) && item['ok'] === true).length;
  const errors = saved.flatMap((one: unknown, at) => {
    const error = isObject(one) && one['ok'] === false ? one['error'] : undefined;
    return isObject(error) ? [{ item: at + 1, message: itemError(error) }] : [];
  });
  const shown = errors.slice(0, SHOWN_ERRORS);
  return { items: { done, total: saved.length, ...(shown.length > 0 && { errors: shown }) } };
}

const SHOWN_ERRORS = 3;
const ERROR_CHARACTERS = 300;

function itemError(error: Readonly<Record<string, unknown>>): string {
  return shorten(
    nodeFailureText({ type: textField(error, 'type'), message: textField(error, 'message') }),
    ERROR_CHARACTERS,
  );
}

/** Adds to the last end of a node what its visit has done. A visit beyond the maximum does nothing. */
function withWork(
  ended: readonly NodeEnded[],
  { node, total }: NodeVisits,
  { at, visits }: Pick<GraphState, 'at'> & Pick<Projection, 'visits'>,
): readonly NodeEnded[] {
  const visit = at?.node === node ? total - 1 : total;
  const done = doneIn(visits, { node, visit });
  const last = ended.findLastIndex(({ exit }) => exit !== 'capped');
  const waitedMs = visits.get(visitKey({ node, visit }))?.waitedMs ?? 0;
  return ended.map((step, index) =>
    index === last ? { ...step, ms: Math.max(0, step.ms - waitedMs), ...done } : step,
  );
}

function doneIn(
  visits: Projection['visits'],
  place: Pick<Place, 'node' | 'visit'>,
): Pick<NodeEnded, 'modelCalls' | 'steps' | 'attempts'> {
  const work = visits.get(visitKey(place));
  if (work === undefined) return {};
  const { modelCalls, steps, activities, attempts } = work;
  return {
    ...(modelCalls > 0 && { modelCalls }),
    ...(steps > 0 && { steps }),
    ...(attempts > activities && { attempts }),
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
  const left = taken.map(({ exit, count }) => {
    const known = before?.taken.find((one) => one.exit === exit)?.count ?? 0;
    return { exit, visits: count - known };
  });
  // Only the time of all visits together is known.
  const isOne = left.reduce((sum, { visits }) => sum + visits, 0) === 1;
  const time = isOne ? ms - (before?.ms ?? 0) : 0;
  return left.flatMap(({ exit, visits }) =>
    Array.from({ length: visits }, () => ({ type: 'node-ended', node, exit, ms: time }) as const),
  );
}

function findVisits(graph: GraphState | undefined, node: string): NodeVisits | undefined {
  return graph?.visited.find((visits) => visits.node === node);
}

function isSame(before: GraphState['at'], now: NonNullable<GraphState['at']>): boolean {
  return before?.node === now.node && before.visit === now.visit;
}

/**
 * Adds the progress of a plan and of the items of an `each`, over all events of the run that an event of
 * the history brings. A plan is made, and actions that had begun end, before the run leaves or enters a
 * node; other changes of actions come last.
 */
export function withProgress(
  steps: readonly DurableStep[],
  changes: readonly States[],
): readonly DurableStep[] {
  const [first] = changes;
  const last = changes.at(-1);
  if (first === undefined || last?.after.graph === undefined) return steps;
  const { made, over, others } = planSteps(first.before, last.after);
  const items = itemSteps(itemProgress(first.before), itemProgress(last.after));
  const end = steps.findIndex(({ type }) => type === 'turn-ended');
  const place = steps.findIndex(({ type }) => type === 'node-ended' || type === 'node-begun');
  const until = place < 0 ? steps.length : place;
  const now = [...made, ...over, ...(end < 0 ? [] : others)];
  return [
    ...items,
    ...steps.slice(0, until),
    ...now,
    ...steps.slice(until),
    ...(end < 0 ? others : []),
  ];
}

/** Returns the step for items that have ended while their node goes on. */
function itemSteps(before: CallProgress | null, now: CallProgress | null): readonly DurableStep[] {
  if (now === null) return [];
  // A new visit begins again.
  const goesOn = before?.node === now.node && before.done <= now.done;
  return now.done === (goesOn ? before.done : 0) ? [] : [{ type: 'items-ended', ...now }];
}

/**
 * Returns the steps of a run's plan between two states: the whole plan if it is new or changed, the
 * ends of actions that had begun, and the other changes.
 */
function planSteps(
  stateBefore: RunState,
  stateNow: RunState,
): Readonly<Record<'made' | 'over' | 'others', readonly DurableStep[]>> {
  const [before, now] = [planProgress(stateBefore), planProgress(stateNow)];
  if (now === null) return { made: [], over: [], others: [] };
  const isKnown = before !== null && wordsOf(before) === wordsOf(now);
  const states = new Map(isKnown ? before.actions.map(({ id, state }) => [id, state]) : []);
  const wasAt = (id: string): ActionProgress['state'] => states.get(id) ?? 'planned';
  const changed = now.actions.filter(({ id, state }) => wasAt(id) !== state);
  const isOver = ({ id, state }: ActionProgress): boolean =>
    (state === 'done' || state === 'failed') && wasAt(id) !== 'planned';
  // A call that ends its node is gone from the new state.
  const shownOf = ({ id, shown }: ActionProgress): string =>
    calledFor(stateNow, id) ?? calledFor(stateBefore, id) ?? shown;
  const step = (action: ActionProgress): DurableStep => ({
    type: 'action-changed',
    action: { ...action, shown: shownOf(action) },
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
