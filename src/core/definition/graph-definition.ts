import { type Json, type JsonObject, isObject } from '../text/json.js';
import { show } from '../text/text.js';
import type { Predicate } from './predicate.js';

/**
 * A graph as data. A run pins it as part of the agent definition. Nodes and exits are lists, so no
 * name has a special meaning.
 */
export interface GraphDefinition {
  /** Name of the first node of each turn. */
  readonly start: string;
  readonly nodes: readonly GraphNode[];
  /** Names of the state's fields. A patch that names another field is refused. */
  readonly fields: readonly string[];
  /** The fields with initial values, and those values. */
  readonly initial: JsonObject;
  /** Fields that are reset to their initial values when a turn begins; the others keep theirs. */
  readonly perTurn: readonly string[];
  /** The field that receives the text of the turn's messages. */
  readonly messageTo?: string;
  /**
   * The field that receives the last messages before the turn, as `{ role, text }`, oldest first.
   */
  readonly historyTo?: { readonly field: string; readonly last: number };
  /** The field that holds the outcome's `answer`; absent: the outcome has the state as JSON. */
  readonly answerFrom?: string;
  /**
   * The answer of a turn becomes a message of the conversation. Absent without `answerFrom`, and in
   * graphs of versions that did not do that.
   */
  readonly answerJoins?: true;
  /**
   * The answers of agents and graphs that nodes call become messages of the conversation, so that the
   * graph's model sees them. Absent where no model reads them, and in graphs of versions that did not
   * do that.
   */
  readonly nodesJoin?: true;
  /**
   * The field that is true if the graph has refused the turn's messages: they and the answer then
   * stay out of later prompts.
   */
  readonly refusedFrom?: string;
  /** The field that receives `{ node, type, message }` when a node leaves by `failed`. */
  readonly errorTo?: string;
}

/** Whether a run of this agent may take messages of an ended turn out of the prompt. */
export function mayRefuse({ graph }: { readonly graph?: GraphDefinition | undefined }): boolean {
  return graph?.refusedFrom !== undefined;
}

/** The target of an exit that ends the turn. No node can have this name. */
export const END = 'end';

/** The target of a node's exit: the name of a node, or `END`. */
export interface GraphExit {
  readonly name: string;
  readonly to: string;
}

/**
 * A node. Its name has letters, digits, `_`, and `-`, begins with a letter, and has at most 40
 * characters.
 */
export type GraphNode = NodeBase & NodeKind;

interface NodeBase {
  readonly name: string;
  readonly exits: readonly GraphExit[];
  /** One line for people; absent: the name. */
  readonly label?: string;
  /** Maximum number of visits in a turn; the next visit immediately leaves by `capped`. */
  readonly maxVisits?: number;
}

/** What a node does. The comment on each kind names its exits; those with `?` are optional. */
export type NodeKind =
  /** A function of the worker that returns a patch of the state. `done`, `failed?`, `capped?`. */
  | ({ readonly kind: 'run' } & WorkerNode)
  /** A function of the worker that chooses an exit. Exits: its own, `failed?`, `capped?`. */
  | ({ readonly kind: 'route' } & WorkerNode)
  /**
   * Selects the first case whose condition holds for the state. The exits are those of the cases,
   * and `else`.
   */
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
      /** Each visit continues the conversation of the previous visit in this run. */
      readonly continues?: true;
      readonly timeoutMs?: number;
    }
  /** A run of another graph with this input. `done`, `stopped`, `failed`, `capped?`. */
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
   * tools, by the first call of the reply, and `text`; `capped?`. With an `output`, the reply is
   * JSON under its schema: `done`, `failed?` (no reply fit the schema), `capped?`.
   */
  | {
      readonly kind: 'decide';
      readonly save?: string;
      /** Added to the conversation as a message of the user at each visit; absent: nothing is. */
      readonly message?: GraphValue;
      /** The model must call a tool; absent: it may also answer in text. Only without `output`. */
      readonly toolChoice?: 'required';
      readonly output?: NodeOutput;
    }
  /**
   * The graph's model makes a plan: calls of tools that are executed later. `planned`, `answered`
   * (nothing to do), `failed?` (every plan had faults), `capped?`.
   */
  | ({ readonly kind: 'plan' } & PlanNode)
  /** The actions of a plan are executed. `done`, `some_failed`, `capped?`. */
  | ({ readonly kind: 'execute' } & ExecuteNode)
  /** The model answers from the results, unless the field already has a text. `done`. */
  | {
      readonly kind: 'answer';
      readonly save: string;
      /** The fields that hold the plan and the results of its actions. */
      readonly plan?: string;
      readonly results?: string;
    }
  /**
   * One tool call: that of a preceding `decide` if `arguments` is absent, else with these
   * arguments. `done`, `failed?`, `capped?`.
   */
  | ({
      readonly kind: 'tool';
      readonly tool: string;
      readonly arguments?: GraphValue;
      readonly save?: string;
    } & Partial<WorkerNode>)
  /**
   * The same for each item of a list, at most `atOnce` at the same time. Saves a list in the order
   * of the items: `{ ok: true, value }` or `{ ok: false, error }`. `done`, `failed?` (the value is
   * not a list or is too long), `capped?`.
   */
  | {
      readonly kind: 'each';
      readonly over: GraphValue;
      readonly atOnce: number;
      readonly body: EachBody;
      readonly save?: string;
    }
  /**
   * A person says yes or no. `yes`, `no`, `expired?`, `capped?`. A node with a `plan` shows the
   * whole plan and adds the exits `some` (only named actions) and `edit` (a request for another
   * plan).
   */
  | {
      readonly kind: 'confirm';
      readonly show: GraphValue;
      /** In ms; absent: the request never expires. */
      readonly expiresMs?: number;
      /** The field that holds the plan. */
      readonly plan?: string;
    };

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
  /** The field that receives the model's text if there is nothing to do. */
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
  /** Maximum number of executions before the node fails. */
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

/** A visit of a node in the graph of a run. */
export interface NodeVisit {
  readonly node: string;
  /** From 1, counted over the whole run; default: the newest visit. */
  readonly visit?: number;
}

/** Returns what is wrong with the place of a visit, or null. `field`: its name in the message. */
export function nodeVisitProblem(value: unknown, field: string): string | null {
  const isPlace = isObject(value) && typeof value['node'] === 'string' && value['node'] !== '';
  if (!isPlace)
    return `${field}: expected the name of a node, got ${show(value)}; give for example {"node": "judge"}`;
  const { visit, node: _, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    return `${field}.${unknown}: expected one of node, visit; correct its name, or remove it`;
  if (visit === undefined || (Number.isInteger(visit) && Number(visit) >= 1)) return null;
  return `${field}.visit: expected the number of a visit, from 1, got ${show(visit)}; omit it for the newest visit`;
}
