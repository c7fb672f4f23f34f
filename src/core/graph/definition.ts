import type { Json, JsonObject } from '../json.js';
import type { Predicate } from '../requests/predicate.js';

/**
 * A graph as data: what a run pins, together with the agent definition that it is a part of. Nodes and
 * exits are lists, so that no name has a special meaning.
 */
export interface GraphDefinition {
  /** Name of the first node of each turn. */
  readonly start: string;
  readonly nodes: readonly GraphNode[];
  /** Names of the state's fields. A patch that names another field is refused. */
  readonly fields: readonly string[];
  /** The fields that have a value at the start, with that value. */
  readonly initial: JsonObject;
  /** Fields that are set back to their initial value when a turn begins; the others stay. */
  readonly perTurn: readonly string[];
  /** The field that receives the text of the turn's messages. */
  readonly messageTo?: string;
  /** The field that receives the last messages before the turn, as `{ role, text }`, oldest first. */
  readonly historyTo?: { readonly field: string; readonly last: number };
  /** The field that holds the outcome's `answer`; absent: the outcome has the state as JSON. */
  readonly answerFrom?: string;
  /** The field that receives `{ node, type, message }` when a node leaves by `failed`. */
  readonly errorTo?: string;
}

/** The target of an exit that ends the turn. No node can have this name. */
export const END = 'end';

/** Where a node leads if it leaves by this exit: the name of a node, or `END`. */
export interface GraphExit {
  readonly name: string;
  readonly to: string;
}

/** A node. Its name has letters, digits, `_`, and `-`, begins with a letter, and has at most 40 characters. */
export type GraphNode = NodeBase & NodeKind;

interface NodeBase {
  readonly name: string;
  readonly exits: readonly GraphExit[];
  /** One line for people; absent: the name. */
  readonly label?: string;
  /** The node runs at most so often in a turn; the next visit leaves by `capped` at once. */
  readonly maxVisits?: number;
}

/** What a node does. The exits of each kind are named at its line; those with `?` may be missing. */
export type NodeKind =
  /** A function of the worker that returns a patch of the state. `done`, `failed?`, `capped?`. */
  | ({ readonly kind: 'run' } & WorkerNode)
  /** A function of the worker that chooses an exit. Exits of its own, `failed?`, `capped?`. */
  | ({ readonly kind: 'route' } & WorkerNode)
  /** The first case that holds for the state. The exits are the cases', and `else`. */
  | { readonly kind: 'choose'; readonly cases: readonly GraphCase[] }
  /** A run of an agent. `done`, `stopped`, `failed`, `capped?`. */
  | {
      readonly kind: 'agent';
      readonly agent: string;
      /** Empty text with `prompt`. */
      readonly message: GraphValue;
      /** The prompt of the agent that takes the place of the message. */
      readonly prompt?: string;
      /** The arguments of the prompt. */
      readonly args?: GraphValue;
      readonly save?: string;
      /** Each visit continues the conversation of the visit before it in this run. */
      readonly continues?: true;
      readonly timeoutMs?: number;
    }
  /** A run of another graph, whose input this is. `done`, `stopped`, `failed`, `capped?`. */
  | {
      readonly kind: 'graph';
      readonly graph: string;
      readonly input: GraphValue;
      /** The field that receives the final state of that graph. */
      readonly save?: string;
      readonly timeoutMs?: number;
    }
  /**
   * One call of the graph's model over the run's transcript. The exits are the names of the graph's
   * tools, by the first call of the reply, and `text`; `capped?`. With an `output`, the reply is JSON
   * under its schema: `done`, `failed?` (no reply has fitted), `capped?`.
   */
  | {
      readonly kind: 'decide';
      readonly save?: string;
      readonly output?: NodeOutput;
    }
  /**
   * The graph's model makes a plan: calls of tools that are executed later. `planned`, `answered`
   * (nothing to do), `failed?` (no plan was without faults), `capped?`.
   */
  | ({ readonly kind: 'plan' } & PlanNode)
  /** The actions of a plan are executed. `done`, `some_failed`, `capped?`. */
  | ({ readonly kind: 'execute' } & ExecuteNode)
  /** The model answers from what was done, unless the field has a text already. `done`. */
  | {
      readonly kind: 'answer';
      readonly save: string;
      /** The fields that have the plan and the results of its actions. */
      readonly plan?: string;
      readonly results?: string;
    }
  /**
   * One tool call: of a `decide` before it if `arguments` is absent, else with these arguments.
   * `done`, `failed?`, `capped?`.
   */
  | ({
      readonly kind: 'tool';
      readonly tool: string;
      readonly arguments?: GraphValue;
      readonly save?: string;
    } & Partial<WorkerNode>)
  /**
   * The same for each item of a list, at most `atOnce` at the same time. Saves a list in the order of the
   * items: `{ ok: true, value }` or `{ ok: false, error }`. `done`, `failed?` (the value is not a list, or
   * it is too long), `capped?`.
   */
  | {
      readonly kind: 'each';
      readonly over: GraphValue;
      readonly atOnce: number;
      readonly body: EachBody;
      readonly save?: string;
    }
  /**
   * A person says yes or no. `yes`, `no`, `expired?`, `capped?`. With a `plan`, which is shown whole, also
   * `some` (only named actions) and `edit` (a wish for another plan).
   */
  | {
      readonly kind: 'confirm';
      readonly show: GraphValue;
      /** In ms; absent: the request never expires. */
      readonly expiresMs?: number;
      /** The field that has the plan. */
      readonly plan?: string;
    };

/** What the reply of a `decide` node has to be. */
export interface NodeOutput {
  readonly name: string;
  /** JSON schema. */
  readonly schema: JsonObject;
  /** Number of replies that the node may take. */
  readonly attempts: number;
}

/** How a plan is made. */
export interface PlanNode {
  /** `schema`: the whole plan in one reply. `catalog`: tools are looked up, and calls are noted one by one. */
  readonly planning: 'schema' | 'catalog';
  /** The field that receives the plan. Nothing else may fill it. */
  readonly save: string;
  /** The field that receives the model's text if there is nothing to do. */
  readonly answer?: string;
  readonly maxActions: number;
  /** Number of plans that the model may give before the node has failed; only for `schema`. */
  readonly attempts: number;
}

/** What happens to an action if one that it needs has failed. */
export type FailedDependency = 'skip' | 'fail' | 'null';

/** How a plan is executed. */
export interface ExecuteNode {
  /** The field that has the plan. */
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
  /** Executions before the node has failed. */
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
 * A value that is computed from the state. Everywhere in it, `{ "$path": "a.b" }` stands for the value
 * at that place of the state, `{ "$item": "a.b" }` for one of the item in an `each` (an empty text: the
 * item itself), and `{ "$text": [parts] }` for a text whose parts are texts or such places.
 */
export type GraphValue = Json;
