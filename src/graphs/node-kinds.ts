import { z } from 'zod';
import type { Agent } from '../agents/agent.js';
import type { Typed, TypedInput } from '../core/definition/agent-types.js';
import type { EachBody } from '../core/definition/node-data.js';
import type { NodeKind } from '../core/definition/node-kinds.js';
import { InputError } from '../core/errors.js';
import type { Json } from '../core/text/json.js';
import type { Duration } from '../core/text/text.js';
import type { NodeContext, Tool } from '../tools/tool.js';
import { timerDuration } from '../validation/check-options.js';
import { caseList } from './cases.js';
import {
  MAX_AT_ONCE,
  type Site,
  agentName,
  authorFunction,
  commonOptions,
  eachFunction,
  nodeKind,
  routeFunction,
  saveOption,
  toRunNode,
  toolName,
  workerOptions,
} from './node-options.js';
import {
  EACH_RESULT,
  GRAPH_RESULT,
  agentResult,
  answerKind,
  computed,
  confirmKind,
  decideKind,
  executeKind,
  limitsOf,
  messageParts,
  nameOf,
  objectOf,
  planKind,
  saveField,
  toolResult,
  withOptionName,
  workerNode,
} from './node-parts.js';
import type {
  ConfirmKind,
  DecideKind,
  EachAction,
  ExactFields,
  ExecuteNodeOptions,
  ExitChoice,
  GraphInputTemplate,
  GraphMessage,
  GraphNodeOptions,
  NodeCases,
  NodeFunctionOptions,
  NodeSaveOptions,
  NodeSpec,
  PlanNodeOptions,
  RouteContext,
} from './node-spec.js';
import { checkPaths } from './state-schema.js';
import {
  type GraphFieldHolding,
  type GraphFieldOf,
  type GraphFieldTaking,
  type GraphPath,
  type GraphPatchOf,
  type GraphPathOf,
  type GraphStateOf,
  type GraphTemplate,
  pathTo,
} from './values.js';

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
  ) => NodeSpec<'done', 'failed' | 'capped'>;
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
  ) => NodeSpec<Exits[number], 'failed' | 'capped'>;
  /**
   * Leaves through the first case that holds, or through `else` if none does. The cases are data.
   */
  readonly choose: <Names extends string>(
    options: { on(state: GraphPath<GraphStateOf<Shape>>): NodeCases<Names> } & GraphNodeOptions,
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
    } & GraphMessage<[state: GraphPath<GraphStateOf<Shape>>]> &
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
      input(state: GraphPath<GraphStateOf<Shape>>): GraphInputTemplate<NoInfer<Input>>;
      /** How long the run may take, as ms or words such as '5 minutes'; then it stops. */
      readonly timeout?: Duration;
    } & NodeSaveOptions<Shape, GraphFieldTaking<Shape, Readonly<Record<string, unknown>>>> &
      GraphNodeOptions,
  ) => NodeSpec<'done' | 'stopped' | 'failed', 'capped'>;
  readonly decide: DecideKind<Shape>;
  /** Makes one tool call: the one that the preceding `decide` chose, or one with `arguments`. */
  readonly tool: (
    options: {
      readonly tool: string | Tool;
      arguments?(state: GraphPath<GraphStateOf<Shape>>): GraphTemplate;
    } & NodeFunctionOptions &
      NodeSaveOptions<Shape> &
      GraphNodeOptions,
  ) => NodeSpec<'done', 'failed' | 'capped'>;
  /** Performs one action for each item of a list. */
  readonly each: <Item>(
    options: {
      over(state: GraphPath<GraphStateOf<Shape>>): GraphPathOf<readonly Item[] | undefined>;
      /** The maximum number of items at the same time, 1 to 50; default 5. */
      readonly atOnce?: number;
    } & EachAction<Shape, Item> &
      NodeSaveOptions<Shape, GraphFieldTaking<Shape, readonly unknown[]>> &
      GraphNodeOptions,
  ) => NodeSpec<'done', 'failed' | 'capped'>;
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

const eachOptions = z.strictObject({
  over: authorFunction,
  atOnce: z.int().min(1).max(MAX_AT_ONCE).optional(),
  run: authorFunction.optional(),
  agent: agentName.optional(),
  message: authorFunction.optional(),
  prompt: z.string().optional(),
  args: authorFunction.optional(),
  graph: agentName.optional(),
  input: authorFunction.optional(),
  tool: toolName.optional(),
  arguments: authorFunction.optional(),
  ...workerOptions,
  ...saveOption,
  ...commonOptions,
});

/** The kinds of nodes: how the options of each are checked, and how a node is built from them. */
export const NODE_KINDS = Object.freeze({
  run: nodeKind(
    'run',
    z.strictObject({ run: authorFunction, ...workerOptions, ...commonOptions }),
    (options, { where, fields }) => ({
      kind: { kind: 'run', ...workerNode(options) },
      exits: ['done'],
      optional: ['failed', 'capped'],
      run: toRunNode(where, fields, options.run),
    }),
  ),
  route: nodeKind(
    'route',
    z.strictObject({
      exits: z.array(z.string()).min(1).max(MAX_AT_ONCE),
      run: authorFunction,
      ...workerOptions,
      ...commonOptions,
    }),
    (options, { where, fields }) => ({
      kind: { kind: 'route', ...workerNode(options) },
      exits: options.exits,
      optional: ['failed', 'capped'],
      run: routeFunction(where, { fields, exits: options.exits }, options.run),
    }),
  ),
  choose: nodeKind(
    'choose',
    z.strictObject({ on: authorFunction, ...commonOptions }),
    ({ on }, { where, fields }) => {
      const list = caseList(
        where,
        withOptionName(where, 'on', () => on(pathTo('$path'))),
      );
      for (const { when } of list) checkPaths(where, { fields, key: 'path' }, when);
      return {
        kind: { kind: 'choose', cases: list },
        exits: [...list.map(({ exit }) => exit), 'else'],
        optional: ['capped'],
      };
    },
  ),
  agent: nodeKind(
    'agent',
    z.strictObject({
      agent: agentName,
      message: authorFunction.optional(),
      prompt: z.string().optional(),
      args: authorFunction.optional(),
      continues: z.literal(true).optional(),
      timeout: timerDuration.optional(),
      ...saveOption,
      ...commonOptions,
    }),
    ({ agent, message, prompt, args, save, continues, timeout }, site) => ({
      kind: {
        kind: 'agent',
        agent: nameOf(agent),
        ...messageParts(site, { agent, message, prompt, args }),
        ...saveField(site, save, agentResult(agent, prompt)),
        ...(continues && { continues }),
        ...limitsOf({ timeout }),
      },
      exits: ['done', 'stopped', 'failed'],
      optional: ['capped'],
      agents: objectOf(agent),
    }),
  ),
  graph: nodeKind(
    'graph',
    z.strictObject({
      graph: agentName,
      input: authorFunction,
      timeout: timerDuration.optional(),
      ...saveOption,
      ...commonOptions,
    }),
    ({ graph, input, save, timeout }, site) => ({
      kind: {
        kind: 'graph',
        graph: nameOf(graph),
        input: computed(site, 'input', input),
        ...saveField(site, save, GRAPH_RESULT),
        ...limitsOf({ timeout }),
      },
      exits: ['done', 'stopped', 'failed'],
      optional: ['capped'],
      agents: objectOf(graph),
    }),
  ),
  decide: decideKind,
  plan: planKind,
  execute: executeKind,
  answer: answerKind,
  tool: nodeKind(
    'tool',
    z.strictObject({
      tool: toolName,
      arguments: authorFunction.optional(),
      ...workerOptions,
      ...saveOption,
      ...commonOptions,
    }),
    ({ tool, arguments: given, save, timeout, attempts }, site) => ({
      kind: {
        kind: 'tool',
        tool: nameOf(tool),
        ...(given !== undefined && { arguments: computed(site, 'arguments', given) }),
        ...saveField(site, save, toolResult(tool)),
        ...limitsOf({ timeout, attempts }),
      },
      exits: ['done'],
      optional: ['failed', 'capped'],
      tools: objectOf(tool),
    }),
  ),
  each: nodeKind('each', eachOptions, (options, site) => ({
    kind: {
      kind: 'each',
      over: computed(site, 'over', options.over),
      atOnce: options.atOnce ?? 5,
      body: eachBody(options, site),
      ...saveField(site, options.save, EACH_RESULT),
    },
    exits: ['done'],
    optional: ['failed', 'capped'],
    ...(options.run && { run: eachFunction(site.where, site.fields, options.run) }),
    agents: [...objectOf(options.agent), ...objectOf(options.graph)],
    tools: objectOf(options.tool),
  })),
  confirm: confirmKind,
} satisfies { readonly [Kind in NodeKind['kind']]: ReturnType<typeof nodeKind> });

/**
 * Returns the kinds that `nodes` receives. They are the same for all graphs; only their types
 * depend on the state.
 */
export function kindsOf<Shape extends z.ZodObject>(): GraphKinds<Shape> {
  return NODE_KINDS;
}

function eachBody(options: z.output<typeof eachOptions>, site: Site): EachBody {
  const { run, agent, graph, tool, timeout } = options;
  const bodies = Object.entries({ run, agent, graph, tool }).filter(
    ([, body]) => body !== undefined,
  );
  if (bodies.length !== 1) {
    const given = bodies.map(([name]) => name).join(' and ') || 'none';
    throw new InputError(
      `${site.where}: expected one of run, agent, graph, and tool, got ${given}`,
    );
  }
  if (agent !== undefined) {
    const { message, prompt, args } = options;
    const input = messageParts(site, { agent, message, prompt, args }, true);
    return { kind: 'agent', agent: nameOf(agent), ...input, ...limitsOf({ timeout }) };
  }
  if (graph !== undefined) {
    return {
      kind: 'graph',
      graph: nameOf(graph),
      input: computed(site, 'input', options.input, true),
      ...limitsOf({ timeout }),
    };
  }
  if (tool !== undefined) {
    const given = computed(site, 'arguments', options.arguments, true);
    return { kind: 'tool', tool: nameOf(tool), arguments: given, ...limitsOf(options) };
  }
  return { kind: 'run', ...workerNode(options) };
}
