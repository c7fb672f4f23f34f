import { PLAN_REPORT } from '../core/plan/results.js';
import type { ActionProgress, PlanProgress } from '../core/run/details.js';
import type { GraphState, NodeVisits, RunState } from '../core/state/state.js';
import { findNode, graphOf } from '../core/state/turn-definition.js';
import { type JsonObject, isObject, textField } from '../core/text/json.js';
import { headOf } from '../core/text/text.js';
import type {
  AssistantMessage,
  ToolCall,
  ToolMessage,
  UserMessage,
} from '../core/transcript/messages.js';
import type { BlockedReason, Outcome, Usage } from '../core/transcript/outcome.js';
import type { RequestKind } from '../core/transcript/request.js';
import { type Projection, visitKey } from './projection.js';

/**
 * A durable step of a run, derived from its history. The same history always produces the same
 * steps, so a reader can resume after the `offset` of the last processed step.
 */
export type DurableEvent = DurableStep & {
  /** The step's place in the run, to pass back as `from`. Its format may change. */
  readonly offset: string;
  /** Unix time in ms, by the server. */
  readonly at: number;
};

/** `usage`: what the model call cost; absent if this segment does not show the call. */
export type DurableStep =
  | { readonly type: 'run-started'; readonly agent: string; readonly open: boolean }
  /** The run continues in a new segment; `segment` is its number, from 1. */
  | { readonly type: 'segment-begun'; readonly segment: number; readonly runId: string }
  | { readonly type: 'turn-begun'; readonly turn: number }
  /** A node of the run's graph has begun; `visit` counts its visits in the run, from 1. */
  | { readonly type: 'node-begun'; readonly node: string; readonly visit: number }
  /**
   * The run has left a node by an exit, before the end of the turn. A node that takes no time, such as
   * a `choose`, only ends. `ms`: how long the visit took. `patch`: the fields of the state that it has
   * changed; absent if it changed none. `modelCalls`, `steps`: its model calls, including those of its
   * function, and the steps of the agents that it has called. `attempts`: all attempts at its work, if
   * some of it was retried. `items`: how many items of an `each` there were, and how many of them have
   * succeeded; `errors`: why the first of the others failed, by item, counted from 1. Each is absent
   * if there was none, and so is what an earlier segment did.
   */
  | {
      readonly type: 'node-ended';
      readonly node: string;
      readonly exit: string;
      readonly ms: number;
      readonly patch?: JsonObject;
      readonly modelCalls?: number;
      readonly steps?: number;
      readonly attempts?: number;
      readonly items?: {
        readonly done: number;
        readonly total: number;
        readonly errors?: readonly { readonly item: number; readonly message: string }[];
      };
    }
  /**
   * A model has replied to the function of a node (`context.generate`). `item`: the item of an `each`,
   * counted from 1. `text`: the beginning of the reply.
   */
  | {
      readonly type: 'node-replied';
      readonly node: string;
      readonly item?: number;
      readonly model: string;
      readonly text: string;
      readonly usage: Usage;
    }
  /** Items of an `each` have ended: `done` of `total` so far, of which `failed` have failed. */
  | {
      readonly type: 'items-ended';
      readonly node: string;
      readonly done: number;
      readonly failed: number;
      readonly total: number;
    }
  /** The run has a plan, or has changed it. */
  | { readonly type: 'plan-made'; readonly actions: readonly ActionProgress[] }
  /** An action of the plan has made progress; `done` of `total` have succeeded so far. */
  | {
      readonly type: 'action-changed';
      readonly action: ActionProgress;
      readonly done: number;
      readonly total: number;
    }
  /**
   * A message of a person or of the engine, a retrieved document or a graph's answer (see `origin`),
   * or an assistant's earlier message supplied by the sender (see `supplied`).
   */
  | { readonly type: 'message-added'; readonly message: UserMessage | AssistantMessage }
  /** A step: the text of the model's reply, and the calls that it requests. */
  | {
      readonly type: 'model-replied';
      readonly message: AssistantMessage;
      readonly usage?: Usage;
    }
  /**
   * An answer that violates its contract, with the message to the model. Later prompts omit both.
   */
  | {
      readonly type: 'answer-refused';
      readonly message: AssistantMessage;
      readonly problem: string;
      readonly usage?: Usage;
    }
  /** A call was passed to a worker or to another agent. Other calls are only finished. */
  | { readonly type: 'call-begun'; readonly turn: number; readonly call: ToolCall }
  /** Emitted in call order when all calls of the step have ended. */
  | { readonly type: 'call-finished'; readonly tool: string; readonly message: ToolMessage }
  /** The model reads this summary in place of the messages that it replaces. */
  | {
      readonly type: 'transcript-compacted';
      readonly message: UserMessage;
      readonly usage?: Usage;
    }
  /** `on`: the id of a call, or `model`. */
  | {
      readonly type: 'work-blocked';
      readonly on: string;
      readonly reason: BlockedReason;
      readonly message: string;
    }
  | { readonly type: 'work-unblocked'; readonly on: string }
  /** The run waits for a decision. `kind`, `call`, and `why` are those of the request. */
  | {
      readonly type: 'request-raised';
      readonly request: string;
      readonly kind: RequestKind;
      readonly call?: string;
      readonly why: string;
    }
  /** `as`: the decision, or `expired`; null if the reason for the request disappeared by itself. */
  | {
      readonly type: 'request-closed';
      readonly request: string;
      readonly as: string | null;
      readonly by?: string;
      /** The interface that has verified `by`; absent: a claim. */
      readonly door?: string;
    }
  | { readonly type: 'run-paused' }
  | { readonly type: 'run-resumed' }
  /** The run has nothing to do until then; `until`: Unix time in ms. */
  | { readonly type: 'wait-begun'; readonly for: 'message' }
  | { readonly type: 'wait-begun'; readonly for: 'time'; readonly until: number }
  | { readonly type: 'turn-ended'; readonly turn: number; readonly outcome: Outcome }
  /** `reason`: the outcome's reason; `terminated` or `timed_out` if Temporal ended the run. */
  | { readonly type: 'run-ended'; readonly reason: string; readonly outcome: Outcome };

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
  const output = end?.type === 'turn-ended' ? end.outcome.output : undefined;
  // The next turn may have begun since, with other values.
  const values = isObject(output) ? output : undefined;
  const { state, visits } = now;
  const { ended, begun } = nodeSteps(before.graph, now.graph, { values, state, visits });
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
 * exits, and its current node. A node that takes no time, such as a `choose`, only ends. `values`:
 * the state's fields behind these nodes, if a turn has ended and another one has begun since.
 * `state`: the state of the run, whose definition has the nodes. `visits`: the work of the visits, by `visitKey`.
 */
export function nodeSteps(
  before: GraphState | undefined,
  now: GraphState | undefined,
  {
    values = now?.values,
    state,
    visits,
  }: { values?: JsonObject | undefined } & Pick<Projection, 'state' | 'visits'>,
): NodeSteps {
  if (now === undefined || now === before) return { ended: [], begun: [] };
  const { at } = now;
  const patch = changedFields(before?.values ?? {}, values ?? {});
  const left = before?.at?.node;
  const ended = now.visited
    .flatMap((of) => withWork(exitsTaken(findVisits(before, of.node), of), of, { at, visits }))
    // Nodes that take no time were passed after the one that did the work.
    .toSorted((one, other) => Number(other.node === left) - Number(one.node === left));
  const [first, ...passed] = ended;
  const items =
    first?.node === left && left !== undefined ? itemsOf(state, left, values ?? {}) : null;
  const isPatched = first?.node === left && Object.keys(patch).length > 0;
  const patched = first
    ? [{ ...first, ...(isPatched && { patch }), ...(items && { items }) }, ...passed]
    : ended;
  const isNew = at !== null && !isSame(before?.at ?? null, at);
  return {
    ended: patched,
    begun: isNew ? [{ type: 'node-begun', node: at.node, visit: at.visit }] : [],
  };
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
  return headOf(`${textField(error, 'type')}: ${textField(error, 'message')}`, ERROR_CHARACTERS);
}

/** Adds to the last end of a node what its visit has done. */
function withWork(
  ended: readonly NodeEnded[],
  { node, total }: NodeVisits,
  { at, visits }: Pick<GraphState, 'at'> & Pick<Projection, 'visits'>,
): readonly NodeEnded[] {
  const visit = at?.node === node ? total - 1 : total;
  const work = visits.get(visitKey({ node, visit }));
  const last = ended.at(-1);
  if (last === undefined || work === undefined) return ended;
  const { modelCalls, steps, activities, attempts } = work;
  return [
    ...ended.slice(0, -1),
    {
      ...last,
      ...(modelCalls > 0 && { modelCalls }),
      ...(steps > 0 && { steps }),
      ...(attempts > activities && { attempts }),
    },
  ];
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

/** Returns the actions of a plan as text. */
function wordsOf({ actions }: PlanProgress): string {
  return JSON.stringify(actions.map(({ id, tool, shown }) => [id, tool, shown]));
}
