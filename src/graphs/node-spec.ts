import type { Agent } from '../agents/agent.js';
import type { Typed, TypedInput } from '../core/definition/output-type.js';
import type { Duration } from '../core/text/duration.js';
import type { Predicate } from '../core/requests/predicate.js';
import type { NodeContext, Tool } from '../tools/tool.js';
import type { Json } from '../core/json.js';
import type { z } from 'zod';
import type { ExecuteNodeOptions, PlanNodeOptions } from './plan-spec.js';
import type { GraphText, GraphPath, GraphPathOf, GraphTemplate } from './path.js';

import type {
  GraphFieldHolding,
  GraphFieldOf,
  GraphFieldTaking,
  GraphPatchOf,
  GraphStateOf,
} from './state-shape.js';

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
   * wired.
   */
  readonly maxVisits?: number;
}

/** How a worker executes a node's function. */
export interface NodeFunctionOptions {
  /** The maximum number of executions before the node fails; default 3. */
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
  readonly save?: Field;
}

declare const EXIT: unique symbol;

/** The exit that a `route` takes, made by `exit(name, patch?)`. */
export interface ExitChoice<Exits extends string = string> {
  readonly [EXIT]?: Exits;
  readonly exit: Exits;
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

type Capped = 'failed' | 'capped';

/** The kinds of nodes, as `nodes` of `defineGraph` receives them. */
export interface GraphKinds<Shape extends z.ZodObject> {
  /** Runs a function on the worker that returns a patch of the state. */
  readonly run: <Patch extends GraphPatchOf<Shape>>(
    options: {
      run(
        state: GraphStateOf<Shape>,
        context: NodeContext,
      ): Promise<ExactFields<Patch, GraphPatchOf<Shape>>>;
    } & NodeFunctionOptions &
      GraphNodeOptions,
  ) => NodeSpec<'done', Capped>;
  /** Runs a function on the worker that chooses one of the exits. */
  readonly route: <const Exits extends readonly string[]>(
    options: {
      readonly exits: Exits;
      run(
        state: GraphStateOf<Shape>,
        context: RouteContext<Shape, Exits[number]>,
      ): Promise<ExitChoice<Exits[number]>> | ExitChoice<Exits[number]>;
    } & NodeFunctionOptions &
      GraphNodeOptions,
  ) => NodeSpec<Exits[number], Capped>;
  /**
   * Leaves through the first case that holds, or through `else` if none does. The cases are data.
   */
  readonly choose: <Names extends string>(
    options: { on(state: Place<Shape>): NodeCases<Names> } & GraphNodeOptions,
  ) => NodeSpec<Names | 'else', 'capped'>;
  /** Runs an agent. */
  readonly agent: <Value = Json>(
    options: {
      readonly agent: string | (Agent & Typed<Value>);
      /** Each visit continues the conversation of the previous visit in the same run. */
      readonly continues?: true;
      /**
       * How long the run may take, as ms or words such as '5 minutes'; then it stops, with its best
       * answer.
       */
      readonly timeout?: Duration;
    } & GraphMessage<[state: Place<Shape>]> &
      // A named prompt may have an output of its own.
      (
        | ({ readonly prompt: string } & NodeSaveOptions<Shape>)
        | ({ readonly prompt?: never } & NodeSaveOptions<
            Shape,
            GraphFieldHolding<Shape, NoInfer<Value>>
          >)
      ) &
      GraphNodeOptions,
  ) => NodeSpec<'done' | 'stopped' | 'failed', 'capped'>;
  /** Runs another graph. */
  readonly graph: <Input = unknown>(
    options: {
      readonly graph: string | (Agent & TypedInput<Input>);
      input(state: Place<Shape>): GraphInputTemplate<NoInfer<Input>>;
      /** How long the run may take, as ms or words such as '5 minutes'; then it stops. */
      readonly timeout?: Duration;
    } & NodeSaveOptions<Shape> &
      GraphNodeOptions,
  ) => NodeSpec<'done' | 'stopped' | 'failed', 'capped'>;
  readonly decide: DecideKind<Shape>;
  /** Makes one tool call: the one that the preceding `decide` chose, or one with `arguments`. */
  readonly tool: (
    options: {
      readonly tool: string | Tool;
      arguments?(state: Place<Shape>): GraphTemplate;
    } & NodeFunctionOptions &
      NodeSaveOptions<Shape> &
      GraphNodeOptions,
  ) => NodeSpec<'done', Capped>;
  /** Performs one action for each item of a list. */
  readonly each: <Item>(
    options: {
      over(state: Place<Shape>): GraphPathOf<readonly Item[] | undefined>;
      /** The maximum number of items at the same time, 1 to 50; default 5. */
      readonly atOnce?: number;
    } & EachAction<Shape, Item> &
      NodeSaveOptions<Shape, GraphFieldTaking<Shape, readonly unknown[]>> &
      GraphNodeOptions,
  ) => NodeSpec<'done', Capped>;
  readonly confirm: ConfirmKind<Shape>;
  /** Lets the graph's model plan calls of the graph's tools. Only reads are executed. */
  readonly plan: (
    options: PlanNodeOptions<Shape> & GraphNodeOptions,
  ) => NodeSpec<'planned' | 'answered', 'failed' | 'capped'>;
  /** Executes the actions of a plan, each as soon as the actions that it needs have ended. */
  readonly execute: (
    options: ExecuteNodeOptions<Shape> & GraphNodeOptions,
  ) => NodeSpec<'done' | 'some_failed', 'capped'>;
  /** Lets the graph's model answer from what was done. A field that already has a text is kept. */
  readonly answer: (
    options: {
      readonly save: GraphFieldTaking<Shape, string>;
      /** The field that contains the plan. */
      readonly plan?: GraphFieldOf<Shape>;
      /** The field that contains the results of the plan's actions. */
      readonly results?: GraphFieldOf<Shape>;
    } & GraphNodeOptions,
  ) => NodeSpec<'done', 'capped'>;
}

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
