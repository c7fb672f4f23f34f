import type { Json, JsonObject } from '../text/json.js';
import {
  type Shape,
  amount,
  count,
  fields,
  json,
  list,
  oneOf,
  optional,
  tagged,
  text,
} from '../text/shape.js';
import { type Predicate, predicateProblem } from './predicate.js';

// The parts of which the data of nodes consists.

/** The target of an exit that ends the turn. No node can have this name. */
export const END = 'end';

/** The target of a node's exit: the name of a node, or `END`. */
export interface GraphExit {
  readonly name: string;
  readonly to: string;
}

/** What every node has. */
export interface NodeBase {
  readonly name: string;
  readonly exits: readonly GraphExit[];
  /** One line for people; absent: the name. */
  readonly label?: string;
  /**
   * Maximum number of visits in a turn; the next visit immediately leaves by `capped`. Default: any
   * number.
   */
  readonly maxVisits?: number;
}

/** The contract for the reply of a `decide` node. */
export interface NodeOutput {
  readonly name: string;
  /** JSON schema. */
  readonly schema: JsonObject;
  /** Maximum number of replies for the node. */
  readonly attempts: number;
}

/** How a plan is made. */
export interface PlanNode {
  /**
   * `schema`: the whole plan in one reply. `catalog`: the model looks up tools and adds calls one
   * by one.
   */
  readonly planning: 'schema' | 'catalog';
  /** The field that receives the plan. Nothing else may write it. */
  readonly save: string;
  /** The field that receives the model's text if there is nothing to do. Default: none. */
  readonly answer?: string;
  readonly maxActions: number;
  /** Maximum number of plans before the node fails; only for `schema`. */
  readonly attempts: number;
}

/** What happens to an action if one of its dependencies failed. */
export type FailedDependency = 'skip' | 'fail' | 'null';

/** How a plan is executed. */
export interface ExecuteNode {
  /** The field that holds the plan. */
  readonly plan: string;
  /** The field that receives the results, by the actions' ids. */
  readonly save: string;
  readonly atOnce: number;
  /** Maximum duration of one action in ms. */
  readonly timeoutMs: number;
  readonly onFailedDependency: FailedDependency;
}

/** How a worker executes a node's function. */
export interface WorkerNode {
  /** Maximum duration of one execution in ms. */
  readonly timeoutMs: number;
  /** How many executions may fail before the node does; one that is lost with its worker does not count. */
  readonly attempts: number;
}

/** A case of a `choose` node. */
export interface GraphCase {
  readonly exit: string;
  readonly when: Predicate;
}

/** What `each` does with one item. */
export type EachBody =
  | ({ readonly kind: 'run' } & WorkerNode)
  | {
      readonly kind: 'agent';
      readonly agent: string;
      readonly message: GraphValue;
      readonly prompt?: string;
      readonly args?: GraphValue;
      readonly timeoutMs?: number;
    }
  | {
      readonly kind: 'graph';
      readonly graph: string;
      readonly input: GraphValue;
      readonly timeoutMs?: number;
    }
  | ({
      readonly kind: 'tool';
      readonly tool: string;
      readonly arguments: GraphValue;
    } & Partial<WorkerNode>);

/**
 * A value computed from the state. At any depth, `{ "$path": "a.b" }` stands for the value at that
 * place in the state. In an `each`, `{ "$item": "a.b" }` stands for a value in the item (an empty
 * string: the item itself). `{ "$text": [parts] }` stands for a text whose parts are texts or such
 * places.
 */
export type GraphValue = Json;

export const nodeFields = {
  name: text,
  exits: list(fields<GraphExit>({ name: text, to: text })),
  label: optional(text),
  maxVisits: optional(count),
};
const when: Shape<Predicate> = predicateProblem;
export const caseShape = fields<GraphCase>({ exit: text, when });
export const workerFields = { timeoutMs: amount, attempts: count };
export const promptFields = { prompt: optional(text), args: optional(json) };
export const timedFields = { timeoutMs: optional(amount) };
export const boundedFields = { ...timedFields, attempts: optional(count) };

type BodyOf<K extends EachBody['kind']> = Extract<EachBody, { kind: K }>;

export const bodyShape = tagged<EachBody, 'kind'>('kind', {
  run: fields<BodyOf<'run'>>({ kind: oneOf('run'), ...workerFields }),
  agent: fields<BodyOf<'agent'>>({
    kind: oneOf('agent'),
    agent: text,
    message: json,
    ...promptFields,
    ...timedFields,
  }),
  graph: fields<BodyOf<'graph'>>({
    kind: oneOf('graph'),
    graph: text,
    input: json,
    ...timedFields,
  }),
  tool: fields<BodyOf<'tool'>>({
    kind: oneOf('tool'),
    tool: text,
    arguments: json,
    ...boundedFields,
  }),
});
