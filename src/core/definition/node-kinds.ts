import { type JsonObject, valueAt } from '../text/json.js';
import {
  type Shape,
  amount,
  count,
  fields,
  json,
  jsonObject,
  list,
  oneOf,
  optional,
  taggedBy,
  text,
  yes,
} from '../text/shape.js';
import {
  type EachBody,
  type ExecuteNode,
  type GraphCase,
  type GraphValue,
  type NodeBase,
  type NodeOutput,
  type PlanNode,
  type WorkerNode,
  bodyShape,
  caseShape,
  nodeFields,
  boundedFields,
  promptFields,
  timedFields,
  workerFields,
} from './node-data.js';
import {
  type Ended,
  type NodeEnd,
  type Planned,
  type Visited,
  agentEnd,
  agentTool,
  eachEnd,
  functionWork,
  itemCalls,
  plannedCall,
  toolEnd,
} from './node-work.js';
import { holds } from './predicate.js';
import type { ToolDefinition } from './tool-definition.js';

/**
 * A node. Its name has letters, digits, `_`, and `-`, begins with a letter, and has at most 40
 * characters.
 */
export type GraphNode = NodeBase & NodeKind;

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
      /** The arguments of the prompt. Default: none. */
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

type Kind = NodeKind['kind'];
type KindOf<K extends Kind> = Extract<NodeKind, { kind: K }>;
type NodeOf<K extends Kind> = Extract<GraphNode, { kind: K }>;

/** All that distinguishes one kind of node from another for the run that visits it. */
interface NodeKindRules<K extends Kind> {
  /** What a run carries and pins. */
  readonly shape: Shape<NodeOf<K>>;
  /** What the node does, in a few words. It may contain any characters. */
  readonly about: (node: KindOf<K>) => string;
  /** What its text is between in a Mermaid chart, which determines its form. */
  readonly drawn: readonly [string, string];
  /** Its work is a call of the graph's model. */
  readonly callsModel?: true;
  /** How its own work is executed, in the form of a tool; absent: it has none, or calls tools. */
  readonly tool?: (node: KindOf<K>) => Partial<ToolDefinition>;
  /** The calls of a visit; absent: none. Those of plans are in `core/graph/run-node.ts`. */
  readonly calls?: (node: KindOf<K>, values: JsonObject) => readonly Planned[];
  /** How a visit with these results has ended; absent: a visit without calls ends elsewhere. */
  readonly end?: <R extends Ended>(
    node: KindOf<K>,
    visited: Visited<R>,
    values: JsonObject,
  ) => NodeEnd<R>;
  /** The exit of a visit that takes no time; absent, or null: it takes time. */
  readonly exitAtOnce?: (node: KindOf<K>, values: JsonObject) => string | null;
}

const BOX = ['["', '"]'] as const;
const CHOICE = ['{{"', '"}}'] as const;
const FRAME = ['[["', '"]]'] as const;

/** The rules of each kind of node. One that is not here does not compile. */
const NODE_KINDS: { readonly [K in Kind]: NodeKindRules<K> } = {
  run: {
    shape: fields<NodeOf<'run'>>({ ...nodeFields, kind: oneOf('run'), ...workerFields }),
    about: () => 'run',
    drawn: BOX,
    ...functionWork,
  },
  route: {
    shape: fields<NodeOf<'route'>>({ ...nodeFields, kind: oneOf('route'), ...workerFields }),
    about: () => 'route',
    drawn: CHOICE,
    ...functionWork,
  },
  choose: {
    shape: fields<NodeOf<'choose'>>({
      ...nodeFields,
      kind: oneOf('choose'),
      cases: list(caseShape),
    }),
    about: () => 'choose',
    drawn: ['{"', '"}'],
    exitAtOnce: ({ cases }, values) => cases.find((one) => holds(one.when, values))?.exit ?? 'else',
  },
  agent: {
    shape: fields<NodeOf<'agent'>>({
      ...nodeFields,
      kind: oneOf('agent'),
      agent: text,
      message: json,
      ...promptFields,
      save: optional(text),
      continues: optional(yes),
      ...timedFields,
    }),
    about: ({ agent }) => `agent ${agent}`,
    drawn: FRAME,
    tool: ({ agent, prompt }) => agentTool(agent, prompt),
    calls: (node, state) => [plannedCall(node, { state })],
    end: (node, { results: [result] }) => agentEnd(node, result),
  },
  graph: {
    shape: fields<NodeOf<'graph'>>({
      ...nodeFields,
      kind: oneOf('graph'),
      graph: text,
      input: json,
      save: optional(text),
      ...timedFields,
    }),
    about: ({ graph }) => `graph ${graph}`,
    drawn: FRAME,
    tool: ({ graph }) => agentTool(graph),
    calls: (node, state) => [plannedCall(node, { state })],
    end: (node, { results: [result] }) => agentEnd(node, result),
  },
  decide: {
    shape: fields<NodeOf<'decide'>>({
      ...nodeFields,
      kind: oneOf('decide'),
      save: optional(text),
      message: optional(json),
      toolChoice: optional(oneOf('required')),
      output: optional(fields<NodeOutput>({ name: text, schema: jsonObject, attempts: count })),
    }),
    about: () => 'decide',
    drawn: CHOICE,
    callsModel: true,
  },
  plan: {
    shape: fields<NodeOf<'plan'>>({
      ...nodeFields,
      kind: oneOf('plan'),
      planning: oneOf('schema', 'catalog'),
      save: text,
      answer: optional(text),
      maxActions: count,
      attempts: count,
    }),
    about: () => 'plan',
    drawn: BOX,
    callsModel: true,
  },
  execute: {
    shape: fields<NodeOf<'execute'>>({
      ...nodeFields,
      kind: oneOf('execute'),
      plan: text,
      save: text,
      atOnce: count,
      timeoutMs: amount,
      onFailedDependency: oneOf('skip', 'fail', 'null'),
    }),
    about: () => 'execute',
    drawn: BOX,
  },
  answer: {
    shape: fields<NodeOf<'answer'>>({
      ...nodeFields,
      kind: oneOf('answer'),
      save: text,
      plan: optional(text),
      results: optional(text),
    }),
    about: () => 'answer',
    drawn: BOX,
    callsModel: true,
    // An earlier node's answer is kept.
    exitAtOnce: ({ save }, values) => (valueAt(values, save) ? 'done' : null),
  },
  tool: {
    shape: fields<NodeOf<'tool'>>({
      ...nodeFields,
      kind: oneOf('tool'),
      tool: text,
      arguments: optional(json),
      save: optional(text),
      ...boundedFields,
    }),
    about: ({ tool }) => `tool ${tool}`,
    drawn: BOX,
    calls: ({ kind, tool, arguments: given = {} }, state) => [
      plannedCall({ kind, tool, arguments: given }, { state }),
    ],
    end: (node, { results: [result] }) => toolEnd(node, result),
  },
  each: {
    shape: fields<NodeOf<'each'>>({
      ...nodeFields,
      kind: oneOf('each'),
      over: json,
      atOnce: count,
      body: bodyShape,
      save: optional(text),
    }),
    about: ({ body, atOnce }) => `each ${rulesOf(body).about(body)}, ${atOnce} at once`,
    drawn: BOX,
    calls: itemCalls,
    end: (node, visited, values) => eachEnd(node, values, visited),
  },
  confirm: {
    shape: fields<NodeOf<'confirm'>>({
      ...nodeFields,
      kind: oneOf('confirm'),
      show: json,
      expiresMs: optional(amount),
      plan: optional(text),
    }),
    about: () => 'confirm',
    // In flow charts, a trapezoid is a manual operation. An emoji marks a person.
    drawn: ['[\\"👤 ', '"/]'],
    tool: ({ expiresMs }) => ({ kind: 'question', ...(expiresMs !== undefined && { expiresMs }) }),
  },
};

/** A node of any kind, with its name and exits. */
export const nodeShape: Shape<GraphNode> = taggedBy(
  'kind',
  Object.entries(NODE_KINDS).map(([kind, { shape }]) => [kind, shape] as const),
);

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- ties a node to its rules
function rulesOf<K extends Kind>({ kind }: { readonly kind: K }): NodeKindRules<K> {
  return NODE_KINDS[kind];
}

/** Returns what a node does, in a few words. */
export function aboutNode(node: NodeKind): string {
  return rulesOf(node).about(node);
}

/** Returns the delimiters of a node's text in a Mermaid chart, which determine its form. */
export function drawnAs(kind: Kind): readonly [string, string] {
  return NODE_KINDS[kind].drawn;
}

/** Whether the work of a node is a call of the graph's model. */
export function callsModel({ kind }: Pick<NodeKind, 'kind'>): boolean {
  return NODE_KINDS[kind].callsModel === true;
}

/** Whether a visit of the node takes time. A kind that only has an exit at once does not. */
export function takesTime({ kind }: Pick<NodeKind, 'kind'>): boolean {
  const { calls, callsModel: isReply, exitAtOnce: exit } = NODE_KINDS[kind];
  return exit === undefined || calls !== undefined || isReply === true;
}

/** Returns how a node's own work is executed; undefined if it has none, or calls tools. */
export function ownTool(work: NodeKind | EachBody): Partial<ToolDefinition> | undefined {
  return rulesOf(work).tool?.(work);
}

/** Returns the calls of a visit, from the state of the graph. */
export function plannedCalls(node: NodeKind, values: JsonObject): readonly Planned[] {
  return rulesOf(node).calls?.(node, values) ?? [];
}

/** Returns how a visit with these results has ended. */
export function nodeEnd<R extends Ended>(
  node: NodeKind,
  visited: Visited<R>,
  values: JsonObject,
): NodeEnd<R> {
  return rulesOf(node).end?.(node, visited, values) ?? { exit: 'failed' };
}

/** Returns the exit of a node that takes no time; null for any other node. */
export function exitAtOnce(node: NodeKind, values: JsonObject): string | null {
  return rulesOf(node).exitAtOnce?.(node, values) ?? null;
}
