import type { GraphDefinition } from '../core/definition/graph-definition.js';
import { PLAN_REPORT } from '../core/plan/results.js';
import type { ActionProgress, PlanProgress } from '../core/run/details.js';
import type { GraphState, NodeVisits, RunState } from '../core/state/state.js';
import { getOutcome } from '../core/state/turn.js';
import { findNode, graphOf, nodeCallId } from '../core/state/turn-definition.js';
import { type JsonObject, isObject, textField } from '../core/text/json.js';
import { shorten } from '../core/text/text.js';
import type { Outcome } from '../core/transcript/outcome.js';
import type { DurableStep } from './durable-steps.js';
import { type Projection, visitKey } from './projection.js';

/** A run's place in its graph, and the progress of its plan. */
interface Progress {
  readonly graph: GraphState | undefined;
  readonly plan: PlanProgress | null;
}

/**
 * Adds the steps of a run in its graph between two states to those of its messages. Each step of a
 * plan comes between the beginning and the end of its node: a plan is made, and actions that had
 * begun end, before the run leaves that node; other changes of actions come after the run has
 * entered the next one. The last node of a turn ends before the turn and its answer, and a node
 * begins before its message to the model.
 */
export function withGraphSteps(
  messages: readonly DurableStep[],
  before: Progress,
  now: Progress & Pick<Projection, 'state' | 'visits'>,
): readonly DurableStep[] {
  const place = messages.findIndex(({ type }) => type === 'turn-ended');
  const end = messages[place];
  const outcome = end?.type === 'turn-ended' ? end.outcome : undefined;
  // The next turn may have begun since, with other values.
  const values = isObject(outcome?.output) ? outcome.output : undefined;
  const { state, visits } = now;
  const { ended, begun } = nodeSteps(before.graph, now.graph, { values, outcome, state, visits });
  const { made, over, others } = planSteps(before.plan, now.plan);
  if (place >= 0) {
    const last = [...made, ...over, ...others, ...ended];
    const answer = messages.findIndex(isAnswerOfGraph);
    const until = answer >= 0 && answer < place ? answer : place;
    return [...messages.slice(0, until), ...last, ...messages.slice(until), ...begun];
  }
  const own = messages.findIndex((step) => isOfNode(step, now.graph?.at?.node));
  const until = begun.length === 0 || own < 0 ? messages.length : own;
  const first = [...messages.slice(0, until), ...made, ...over, ...ended];
  return [...first, ...begun, ...messages.slice(until), ...others];
}

/** Whether a step adds the answer of a graph, which no node has said. */
function isAnswerOfGraph(step: DurableStep): boolean {
  if (step.type !== 'message-added' || step.message.role !== 'assistant') return false;
  return step.message.origin === 'graph' && step.message.node === undefined;
}

/** Whether a step adds the message of a node to the graph's model, such as the report on a plan. */
function isOfNode(step: DurableStep, name: string | undefined): boolean {
  if (step.type !== 'message-added' || step.message.role !== 'user') return false;
  const { origin, node, text } = step.message;
  return origin === 'graph' ? node === name : origin === 'perdure' && text.startsWith(PLAN_REPORT);
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
 * exits, and its current node. A node that takes no time, such as a `choose`, only ends. `state`: the
 * state of the run, whose definition has the nodes. `visits`: the work of the visits, by `visitKey`.
 */
export function nodeSteps(
  before: GraphState | undefined,
  now: GraphState | undefined,
  { values = now?.values, outcome, state, visits }: Passed & Pick<Projection, 'state' | 'visits'>,
): NodeSteps {
  if (now === undefined || (now === before && outcome === undefined))
    return { ended: [], begun: [] };
  const { at } = now;
  const patch = changedFields(before?.values ?? {}, values ?? {});
  const left = before?.at?.node;
  const ended = inOrder(
    now.visited.flatMap((of) =>
      withWork(exitsTaken(findVisits(before, of.node), of), of, { at, visits }),
    ),
    { from: left, graph: state === null ? undefined : graphOf(state) },
  );
  const [first, ...passed] = ended;
  const items =
    first?.node === left && left !== undefined ? itemsOf(state, left, values ?? {}) : null;
  const isPatched = first?.node === left && Object.keys(patch).length > 0;
  const patched = first
    ? [
        {
          ...first,
          ...(isPatched && { patch }),
          ...(items && { items }),
          ...(first.node === left && deciderAt(state, before?.at ?? null)),
        },
        ...passed,
      ]
    : [];
  const last = outcome && interruptedIn(before, now, { outcome, state, ended });
  const isNew = at !== null && at !== last && !isSame(before?.at ?? null, at);
  return {
    ended: last ? [...patched, endOfTurnIn(last, outcome, visits)] : patched,
    begun: isNew ? [{ type: 'node-begun', node: at.node, visit: at.visit }] : [],
  };
}

/** What has happened between two states. */
interface Passed {
  /** The state's fields behind the nodes, if a turn has ended and another one has begun since. */
  readonly values?: JsonObject | undefined;
  /** How the turn ended, if one did. */
  readonly outcome?: Outcome | undefined;
}

type Place = NonNullable<GraphState['at']>;

/** Returns the place in the graph at which a turn ended, by no exit of the node; null if it ended by one. */
function interruptedIn(
  before: GraphState | undefined,
  now: GraphState,
  {
    outcome,
    state,
    ended,
  }: { outcome: Outcome; state: RunState | null; ended: readonly NodeEnded[] },
): Place | null {
  if (outcome.status === 'completed') return null;
  const isOfTurn = state !== null && getOutcome(state) !== null;
  if (now.at !== null && isOfTurn) return now.at;
  const left = before?.at ?? null;
  return ended.some(({ node }) => node === left?.node) ? null : left;
}

function endOfTurnIn(
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
function deciderAt(state: RunState | null, at: GraphState['at']): Pick<NodeEnded, 'by' | 'door'> {
  if (at === null) return {};
  const begin = `${nodeCallId(at.node, { at })}_`;
  const { by, door } =
    state?.decisions?.findLast(
      ({ what, call = '', as, refused }) =>
        what === 'resolve' && refused === undefined && as !== 'expired' && call.startsWith(begin),
    ) ?? {};
  return { ...(by !== undefined && { by }), ...(door !== undefined && { door }) };
}

/** Returns how many items of an `each` there were, by the field that it saves; null for any other node. */
function itemsOf(
  state: RunState | null,
  name: string,
  values: JsonObject,
): NodeEnded['items'] | null {
  const graph = state === null ? undefined : graphOf(state);
  const node = graph && findNode(graph, name);
  const field = node?.kind === 'each' ? node.save : undefined;
  const saved = field === undefined ? undefined : values[field];
  if (!Array.isArray(saved)) return null;
  const done = saved.filter((item) => isObject(item) && item['ok'] === true).length;
  const errors = saved.flatMap((one: unknown, at) => {
    const error = isObject(one) && one['ok'] === false ? one['error'] : undefined;
    return isObject(error) ? [{ item: at + 1, message: itemError(error) }] : [];
  });
  const shown = errors.slice(0, SHOWN_ERRORS);
  return { done, total: saved.length, ...(shown.length > 0 && { errors: shown }) };
}

const SHOWN_ERRORS = 3;
const ERROR_CHARACTERS = 300;

function itemError(error: Readonly<Record<string, unknown>>): string {
  return shorten(`${textField(error, 'type')}: ${textField(error, 'message')}`, ERROR_CHARACTERS);
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

/** Returns the actions of a run's plan that have ended between two states. */
export function endedActions(
  before: PlanProgress | null,
  now: PlanProgress | null,
): readonly ActionProgress[] {
  const { over, others } = planSteps(before, now);
  return [...over, ...others].flatMap((step) =>
    step.type === 'action-changed' && ['done', 'failed'].includes(step.action.state)
      ? [step.action]
      : [],
  );
}

/** Returns the actions of a plan as text. */
function wordsOf({ actions }: PlanProgress): string {
  return JSON.stringify(actions.map(({ id, tool, shown }) => [id, tool, shown]));
}
