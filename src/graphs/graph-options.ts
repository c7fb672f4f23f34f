import { z } from 'zod';
import type { Agent, AgentOptions, GraphParts } from '../agents/agent.js';
import type { TypedInput } from '../core/definition/agent-types.js';
import { END, type GraphExit } from '../core/definition/node-data.js';
import type { GraphNode } from '../core/definition/node-kinds.js';
import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import {
  type OptionSchemas,
  anyFunction,
  checkOptions,
  expected,
} from '../validation/check-options.js';
import type { GraphKinds } from './node-kinds.js';
import type { NodeSpec } from './node-spec.js';
import type { GraphFieldOf, GraphPatchOf, GraphStateOf } from './values.js';

/** The options of an agent that a graph has, too. Most of them affect only its model calls. */
export type GraphAgentOptions = Pick<AgentOptions, 'tools' | 'agents' | 'decide' | PassedOption>;

/** The options that a graph passes to its agent unchanged. */
const PASSED = [
  'compaction',
  'description',
  'forkFrom',
  'limits',
  'mcp',
  'model',
  'onLimit',
  'remember',
  'retention',
  'retrieve',
  'rules',
  'settings',
  'texts',
] as const;
/** An option of an agent that a graph also takes. */
export type PassedOption = (typeof PASSED)[number];

/** Returns those of the options that a graph passes to its agent and that are given. */
export function passedOptions(
  options: Pick<AgentOptions, PassedOption>,
): Pick<AgentOptions, PassedOption> {
  return Object.fromEntries(
    PASSED.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
  );
}

/** The schemas of these options; `defineAgent` checks their values. */
export const PASSED_SCHEMAS = {
  agents: z.unknown().optional(),
  compaction: z.unknown().optional(),
  description: z.unknown().optional(),
  forkFrom: z.unknown().optional(),
  limits: z.unknown().optional(),
  mcp: z.unknown().optional(),
  model: z.unknown().optional(),
  onLimit: z.unknown().optional(),
  remember: z.unknown().optional(),
  retention: z.unknown().optional(),
  retrieve: z.unknown().optional(),
  rules: z.unknown().optional(),
  settings: z.unknown().optional(),
  texts: z.unknown().optional(),
} as const;

/** The options of agents that a graph does not have, and what to use instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  attempts: 'give `attempts` to the decide or plan node',
  onInvalid: 'wire the exit `failed` of the node',
  onPlainText: 'wire the exit `text` of the decide node',
  output: 'a graph ends with its state: use `answerFrom`, or `output` of a decide node',
  prompts: 'give the prompts to an agent that a node calls',
  toolCalls: 'a decide node takes one call; use `each` or a plan for several',
  toolChoice: 'give `toolChoice` to the decide node',
  toolExposure: 'use `planning: "catalog"` of a plan node',
};

/** Throws an `InputError` for an option of agents that `kind` (such as `graph`) does not have. */
export function refuseAgentOptions(kind: string, options: unknown): void {
  if (!isObject(options)) return;
  const name = Object.keys(options).find((key) => Object.hasOwn(INSTEAD, key));
  if (name === undefined) return;
  const { name: own } = options;
  const where = typeof own === 'string' ? `${kind} ${show(own)}` : kind;
  throw new InputError(
    `${where}: ${name}: expected no such option, which only agents have; ${INSTEAD[name]}`,
  );
}

/** What an author passes to `defineGraph`. */
export interface GraphOptions<
  Shape extends z.ZodObject = z.ZodObject,
  Nodes extends Readonly<Record<string, NodeSpec>> = Readonly<Record<string, NodeSpec>>,
> extends GraphAgentOptions {
  /** As for agents; graphs and agents share one namespace. */
  readonly name: string;
  /** The state. A field with a default starts with it; every other field starts without a value. */
  readonly state: Shape;
  nodes(kinds: GraphKinds<Shape>): Nodes;
  /**
   * The system message of the `decide` nodes. Required, if a node calls the model and `decide` is
   * not a function.
   */
  readonly instructions?: AgentOptions['instructions'];
  /** The field that receives the text of the turn's messages. Default: none. */
  readonly messageTo?: GraphFieldOf<Shape>;
  /**
   * The field that receives the last messages before the turn, as `{ role, text }`, oldest first.
   * Default: none.
   */
  readonly historyTo?: { readonly field: GraphFieldOf<Shape>; readonly last: number };
  /**
   * The field that is the outcome's `answer`, and the assistant's message in the conversation.
   * Default: the answer is the state as JSON, and joins no conversation.
   */
  readonly answerFrom?: GraphFieldOf<Shape>;
  /**
   * The field that is `true` at the end of a turn whose messages the graph has refused, such as a
   * request that a guard turned down. The transcript keeps them, with the answer; no later prompt
   * and no `historyTo` has them. Each turn resets the field. Default: none.
   */
  readonly refusedFrom?: GraphFieldOf<Shape>;
  /**
   * The field that receives `{ node, type, message }` when a node leaves through `failed`. Default:
   * none.
   */
  readonly errorTo?: GraphFieldOf<Shape>;
  /** The fields that each turn resets; the others keep their values. Default: none. */
  readonly perTurn?: readonly GraphFieldOf<Shape>[];
}

/** A graph made by `defineGraph`. It is an agent, and can be used wherever an agent can. */
export interface Graph<State = Readonly<Record<string, unknown>>, Input = unknown>
  extends Agent<State>, TypedInput<Input> {
  readonly graph: GraphParts;
}

/** The type of a graph's `input`: any of the state's fields. */
export type GraphInput<Given extends Graph> =
  Given extends Graph<unknown, infer Input> ? Input : never;

/** The graph of a state. */
export type GraphOf<Shape extends z.ZodObject> = Graph<
  Partial<GraphStateOf<Shape>>,
  GraphPatchOf<Shape>
>;

const MAX_HISTORY = 1_000;

const graphOptions = z.strictObject({
  name: z.string().regex(/^[\w.-]{1,64}$/, 'expected 1 to 64 letters, digits, "_", "-" or "."'),
  state: expected('a state such as z.object({…})', (value) => value instanceof z.ZodObject),
  nodes: anyFunction,
  instructions: z.unknown().optional(),
  messageTo: z.string().optional(),
  historyTo: z
    .strictObject({ field: z.string(), last: z.int().min(1).max(MAX_HISTORY) })
    .optional(),
  answerFrom: z.string().optional(),
  refusedFrom: z.string().optional(),
  errorTo: z.string().optional(),
  perTurn: z.array(z.string()).optional(),
  // `defineAgent` checks these.
  ...PASSED_SCHEMAS,
  decide: z.unknown().optional(),
  tools: z.unknown().optional(),
} satisfies OptionSchemas<GraphOptions>);

/** Throws an `InputError` with a line for each fault of a graph's options. */
export function assertGraphOptions(options: object): void {
  refuseAgentOptions('graph', options);
  checkOptions('graph', { schema: graphOptions, options });
}

/** Throws an `InputError` for unreachable nodes, and for cycles that may never end. */
export function checkGraph(graph: string, start: string, nodes: readonly GraphNode[]): void {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const reached = reachable(byName, [start], () => true);
  const lost = nodes.find(({ name }) => !reached.has(name));
  if (lost !== undefined) {
    throw new InputError(
      `graph "${graph}": node "${lost.name}" is never reached from "${start}"; wire an exit to it or remove it`,
    );
  }
  checkCycles(graph, byName);
  for (const node of nodes) {
    if (node.kind === 'tool' && node.arguments === undefined) checkCall(graph, byName, node);
  }
}

/** Whether a turn can take an exit any number of times without reaching a limit or a person. */
function isUnbounded(node: GraphNode, exit: GraphExit): boolean {
  if (node.maxVisits !== undefined || node.kind === 'decide' || node.kind === 'plan') return false;
  return node.kind !== 'confirm' || exit.name === 'expired';
}

/**
 * Throws an `InputError` for a cycle that nothing bounds: no `maxVisits`, no step limit, and no
 * person.
 */
function checkCycles(graph: string, nodes: ReadonlyMap<string, GraphNode>): void {
  const done = new Set<string>();
  for (const start of nodes.keys()) {
    // Walks without recursion, because a graph may be deeper than the call stack.
    const walk = [{ name: start, next: unbounded(nodes.get(start)) }];
    while (walk.length > 0) {
      const here = walk.at(-1);
      if (here === undefined) break;
      const name = here.next.shift();
      if (name === undefined) {
        done.add(here.name);
        walk.pop();
        continue;
      }
      const at = walk.findIndex((step) => step.name === name);
      if (at !== -1)
        throw new InputError(endless(graph, [...walk.slice(at).map((step) => step.name), name]));
      if (!done.has(name)) walk.push({ name, next: unbounded(nodes.get(name)) });
    }
  }
}

function unbounded(node: GraphNode | undefined): string[] {
  if (node === undefined) return [];
  return node.exits
    .filter((exit) => exit.to !== END && isUnbounded(node, exit))
    .map(({ to }) => to);
}

function endless(graph: string, cycle: readonly string[]): string {
  return (
    `graph "${graph}": node "${cycle[0] ?? ''}": the cycle ${cycle.join(' → ')} may never end; ` +
    'give one of its nodes `maxVisits` and wire its exit "capped"'
  );
}

/** Throws an `InputError` if no `decide` asks for the call that a `tool` node executes. */
function checkCall(
  graph: string,
  nodes: ReadonlyMap<string, GraphNode>,
  node: GraphNode & { readonly kind: 'tool' },
): void {
  const targets = [...nodes.values()]
    .filter(({ kind }) => kind === 'decide')
    .flatMap(({ exits }) => exits.filter(({ name }) => name === node.tool).map(({ to }) => to));
  // A call passes through other nodes, such as a `confirm`, until the next decision.
  if (reachable(nodes, targets, ({ kind }) => kind !== 'decide').has(node.name)) return;
  throw new InputError(
    `graph "${graph}": node "${node.name}": no exit "${node.tool}" of a decide node leads here; ` +
      'give it `arguments`, or wire that exit to this node',
  );
}

function reachable(
  nodes: ReadonlyMap<string, GraphNode>,
  from: readonly string[],
  passes: (node: GraphNode) => boolean,
): ReadonlySet<string> {
  const found = new Set<string>();
  const open = [...from];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const node = nodes.get(name);
    if (node === undefined || found.has(name)) continue;
    found.add(name);
    if (passes(node)) open.push(...node.exits.map(({ to }) => to));
  }
  return found;
}
