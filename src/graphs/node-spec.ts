import { z } from 'zod';
import type { Agent } from '../agents/agent.js';
import type { Predicate } from '../core/definition/predicate.js';
import type { ActionResult, Plan } from '../core/plan/plan.js';
import { isObject } from '../core/text/json.js';
import type { Duration } from '../core/text/text.js';
import type { NodeContext, Tool } from '../tools/tool.js';
import type {
  GraphFieldHolding,
  GraphFieldOf,
  GraphFieldTaking,
  GraphPatchOf,
  GraphPath,
  GraphPathOf,
  GraphStateOf,
  GraphTemplate,
  GraphText,
} from './values.js';

/** Options of a `plan` node. */
export interface PlanNodeOptions<Shape extends z.ZodObject> {
  /** The field that receives the plan; only this node may fill it. Its type is `planState.plan`. */
  readonly save: GraphFieldHolding<Shape, Plan>;
  /** The field that receives the model's text if there is nothing to do. Default: none. */
  readonly answer?: GraphFieldTaking<Shape, string>;
  /**
   * `schema` (default): the whole plan in one reply, with all tools in the prompt. `catalog`: the
   * model looks tools up, and its calls are noted one by one; reads are executed.
   */
  readonly planning?: 'schema' | 'catalog';
  /** Default 200, at most 500. */
  readonly maxActions?: number;
  /** The maximum number of plans before the node fails; default 5. */
  readonly attempts?: number;
}

/** Options of an `execute` node. */
export interface ExecuteNodeOptions<Shape extends z.ZodObject> {
  /** The field that contains the plan. */
  readonly plan: GraphFieldOf<Shape>;
  /** The field that receives the results by the actions' ids. Its type is `planState.results`. */
  readonly save: GraphFieldHolding<Shape, Readonly<Record<string, ActionResult>>>;
  /** The maximum number of actions at the same time, 1 to 50; default 5. */
  readonly atOnce?: number;
  /** How long one action may take. A duration: ms, or words such as '30 seconds', the default. */
  readonly timeout?: Duration;
  /**
   * What happens to an action if one that it needs has failed: it is skipped with a reason (`skip`,
   * default), no further action of the plan starts (`fail`), or each of its references to that
   * result, also to a part of it, is null (`null`). An action that needs approval is never executed after a failure.
   */
  readonly onFailedDependency?: 'skip' | 'fail' | 'null';
}

declare const EXITS: unique symbol;

/** A node before its edges are known. `Exits` must be wired; `Optional` ones may be. */
export interface NodeSpec<Exits extends string = string, Optional extends string = string> {
  readonly [EXITS]?: { readonly exits: Exits; readonly optional: Optional };
  readonly kind: string;
  readonly options: object;
}

/** Refuses fields that the state does not have. */
export type ExactFields<Given, Allowed> = Given & {
  // Maps all fields, because an empty object would disable the check for weak types.
  readonly [Key in keyof Given]: Key extends keyof Allowed ? unknown : never;
};

/** Options that every node accepts. */
export interface GraphNodeOptions {
  /** One line for people; default: the name. */
  readonly label?: string;
  /**
   * The maximum number of visits per turn; the next visit leaves through `capped`, which must be
   * wired. Default: any number.
   */
  readonly maxVisits?: number;
}

/** How a worker executes a node's function. */
export interface NodeFunctionOptions {
  /**
   * How many executions may fail before the node does; default 3. One that is lost with its worker does
   * not count: it is repeated.
   */
  readonly attempts?: number;
  /**
   * How long one execution may take. A duration: ms, or words such as '2 minutes', which is the
   * default.
   */
  readonly timeout?: Duration;
}

/** The field that receives the node's result. Its type must be able to hold the result. */
export interface NodeSaveOptions<
  Shape extends z.ZodObject,
  Field extends string = GraphFieldOf<Shape>,
> {
  /** The name of the field; default: the result is not kept. */
  readonly save?: Field;
}

declare const EXIT: unique symbol;

/** The exit that a `route` takes, made by `exit(name, patch?)`. */
export interface ExitChoice<Exits extends string = string> {
  readonly [EXIT]?: Exits;
  readonly exit: Exits;
  /** The fields of the state that change; absent if none does. */
  readonly patch?: object;
}

/** What the function of a `route` receives: the context of a node, and `exit`. */
export interface RouteContext<Shape extends z.ZodObject, Exits extends string> extends NodeContext {
  readonly exit: <Name extends Exits>(name: Name, patch?: GraphPatchOf<Shape>) => ExitChoice<Name>;
}

/** The cases of a `choose` node, made by `cases`. */
export interface NodeCases<Names extends string = string> {
  readonly names: readonly Names[];
  readonly when: readonly Predicate[];
}

type Message = string | GraphText | GraphPathOf<unknown>;
/** A place in the state of a graph. */
type Place<Shape extends z.ZodObject> = GraphPath<GraphStateOf<Shape>>;

/** The input of an agent call: a message, or one of its named prompts with arguments. */
export type GraphMessage<Places extends readonly unknown[]> =
  | { message(...places: Places): Message; readonly prompt?: never; readonly args?: never }
  | { readonly prompt: string; args?(...places: Places): GraphTemplate; readonly message?: never };

/** The input of another graph: any of its state's fields. */
export type GraphInputTemplate<Input> = unknown extends Input
  ? GraphTemplate
  : { readonly [Field in keyof Input]?: GraphTemplate };

/** What an `each` node does with one item: a function, an agent, a graph, or a tool. */
export type EachAction<Shape extends z.ZodObject, Item> =
  | ({
      run(state: GraphStateOf<Shape>, item: Item, context: NodeContext): unknown;
    } & NodeFunctionOptions)
  | ({
      readonly agent: string | Agent;
      readonly timeout?: Duration;
    } & GraphMessage<[state: Place<Shape>, item: GraphPath<Item>]>)
  | {
      readonly graph: string | Agent;
      input(state: Place<Shape>, item: GraphPath<Item>): GraphTemplate;
      readonly timeout?: Duration;
    }
  | ({
      readonly tool: string | Tool;
      arguments(state: Place<Shape>, item: GraphPath<Item>): GraphTemplate;
    } & NodeFunctionOptions);

/** The exits that a node with a function has, too. */
type Capped = 'failed' | 'capped';

/** What a `decide` node says to the graph's model. */
interface DecideMessage<Shape extends z.ZodObject> {
  /**
   * Added to the conversation as a message of the user at each visit. Without it, the model sees the
   * conversation with the answers of the agents and graphs that nodes have called.
   */
  message?(state: Place<Shape>): Message;
}

/** The two forms of a `decide` node. */
export interface DecideKind<Shape extends z.ZodObject> {
  /** Calls the graph's model once; the reply is JSON under a schema and is saved in the state. */
  <Value>(
    options: {
      readonly output: z.ZodType<Value>;
      /** The maximum number of replies before the node fails; default 5. */
      readonly attempts?: number;
    } & DecideMessage<Shape> &
      NodeSaveOptions<Shape, GraphFieldHolding<Shape, NoInfer<Value>>> &
      GraphNodeOptions,
  ): NodeSpec<'done', Capped>;
  /** Calls the graph's model once. List the graph's tools in `tools`, so the edges are typed. */
  <const Names extends readonly string[] = readonly string[]>(
    options: {
      readonly tools?: Names;
      /**
       * `required`: the model must call one of the tools. Servers without such a switch may still
       * send a text, so the exit `text` stays. Default: `auto`.
       */
      readonly toolChoice?: 'auto' | 'required';
      readonly output?: never;
    } & DecideMessage<Shape> &
      NodeSaveOptions<Shape, GraphFieldTaking<Shape, string>> &
      GraphNodeOptions,
  ): NodeSpec<Names[number] | 'text', 'capped'>;
}

/** The two forms of a `confirm` node. */
export interface ConfirmKind<Shape extends z.ZodObject> {
  /** Asks a person to approve a whole plan or a part of it, or to request another one. */
  (
    options: {
      /** The field that contains the plan. */
      readonly plan: GraphFieldOf<Shape>;
      /** A text before the plan. */
      show?(state: Place<Shape>): Message;
      /**
       * The time after which an unanswered question expires, as ms or words such as '2 days';
       * default: never.
       */
      readonly expires?: Duration;
    } & GraphNodeOptions,
  ): NodeSpec<'yes' | 'no' | 'some' | 'edit', 'expired' | 'capped'>;
  /** Asks a person for a yes or no. */
  (
    options: {
      show(state: Place<Shape>): Message;
      readonly plan?: never;
      /**
       * The time after which an unanswered question expires, as ms or words such as '2 days';
       * default: never.
       */
      readonly expires?: Duration;
    } & GraphNodeOptions,
  ): NodeSpec<'yes' | 'no', 'expired' | 'capped'>;
}

const plan: z.ZodType<Plan, Plan> = z.custom<Plan>(
  (value) => isObject(value) && Array.isArray(value['actions']) && Array.isArray(value['done']),
  'expected a plan, as a plan node saves it',
);

const results: z.ZodType<
  Readonly<Record<string, ActionResult>>,
  Readonly<Record<string, ActionResult>>
> = z.record(
  z.string(),
  z.custom<ActionResult>((value) => isObject(value) && 'ok' in value),
);

/**
 * The fields of a state that plans: `plan`, which a `plan` node fills, and `results`, the results of
 * its actions by their ids, which an `execute` node fills. Fields of another name take their types
 * from here: `todo: planState.plan`.
 *
 * @example
 * ```ts
 * import { planState } from 'perdure/graphs';
 * import { z } from 'zod';
 *
 * export const state = z.object({ ...planState, answer: z.string().optional() });
 * ```
 */
export const planState = { plan: plan.optional(), results: results.default({}) } as const;

type IsSingle<Names extends string> = {
  [Name in Names]: [Exclude<Names, Name>] extends [never] ? true : false;
}[Names];

type Table<Exits extends string, Optional extends string, Target> = {
  readonly [Name in Exits]: Target;
} & { readonly [Name in Optional]?: Target };

/** Where a node's exits lead: the target itself if there is one exit, else a table. */
export type NodeEdges<Spec, Target> =
  Spec extends NodeSpec<infer Exits, infer Optional>
    ? string extends Exits
      ? // Unknown exits: another error of the graph has been reported, and needs no second one here.
        Target | { readonly [Name in string]?: Target }
      : IsSingle<Exits> extends true
        ? Target | Table<Exits, Optional, Target>
        : Table<Exits, Optional, Target>
    : never;

/** The second step of a graph: where it starts, and where each exit leads. */
export interface GraphWiring<Nodes> {
  readonly start: Extract<keyof Nodes, string>;
  readonly edges: {
    readonly [Name in keyof Nodes]: NodeEdges<Nodes[Name], Extract<keyof Nodes, string> | 'end'>;
  };
}
