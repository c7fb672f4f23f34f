import type { z } from 'zod';
import type { AnswerContract } from '../agents/agent-parts.js';
import type { Agent, AgentOptions, NodeFunction } from '../agents/agent.js';
import { callingTool, defineAgent } from '../agents/define-agent.js';
import { assertAgent, calledEntry } from '../agents/given-agent.js';
import type { GraphDefinition } from '../core/definition/graph-definition.js';
import { type GraphNode, callsModel } from '../core/definition/node-kinds.js';
import type { PlanNode } from '../core/definition/node-data.js';
import { InputError } from '../core/errors.js';
import type { JsonObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { Tool } from '../tools/tool.js';
import { assertOptionNames } from '../validation/option-names.js';
import { buildNodes, unknownNode, wireNodes } from './build-nodes.js';
import {
  type GraphOf,
  type GraphOptions,
  assertGraphOptions,
  checkGraph,
  passedOptions,
} from './graph-options.js';
import type { BuiltNode } from './node-options.js';
import { kindsOf } from './node-kinds.js';
import type { GraphWiring, NodeSpec } from './node-spec.js';
import {
  type StateFields,
  getFields,
  initialValues,
  inputType,
  stateMisfit,
  unknownField,
} from './state-schema.js';

/** A graph whose exits are not wired yet. */
export interface UnwiredGraph<Shape extends z.ZodObject, Nodes> {
  /**
   * Connects each exit to a node or to `end`. Throws an `InputError` for the first fault of the
   * graph.
   */
  wire(wiring: GraphWiring<Nodes>): GraphOf<Shape>;
}

/**
 * Makes a graph in two steps: the nodes here, then the targets of their exits in `wire`. Throws an
 * `InputError` if the definition is invalid; it names the graph, the node, and the fix.
 *
 * @example
 * ```ts
 * import { cases, defineGraph, text } from 'perdure/graphs';
 * import { z } from 'zod';
 *
 * export const mail = defineGraph({
 *   name: 'mail',
 *   state: z.object({ text: z.string(), answer: z.string().optional(), urgent: z.boolean().default(false) }),
 *   nodes: ({ run, agent, choose, confirm }) => ({
 *     load: run({ run: async (s) => ({ text: s.text.trim() }) }),
 *     sort: choose({ on: (s) => cases({ urgent: s.urgent.is(true) }) }),
 *     ask: agent({ agent: 'desk', message: (s) => text`Answer: ${s.text}`, save: 'answer' }),
 *     send: confirm({ show: (s) => text`Send ${s.answer}?`, expires: '2 days' }),
 *   }),
 * }).wire({
 *   start: 'load',
 *   edges: {
 *     load: 'sort',
 *     sort: { urgent: 'end', else: 'ask' },
 *     ask: { done: 'send', stopped: 'end', failed: 'end' },
 *     send: { yes: 'end', no: 'ask', expired: 'end' },
 *   },
 * });
 * ```
 */
export function defineGraph<
  Shape extends z.ZodObject,
  Nodes extends Readonly<Record<string, NodeSpec>>,
>(given: GraphOptions<Shape, Nodes>): UnwiredGraph<Shape, Nodes> {
  assertGraphOptions(given);
  const { name } = given;
  // A graph's model calls agents as it calls tools, so they have exits and can be planned.
  const called = calledAgents(given);
  const tools = [...(given.agents === undefined ? [] : (given.tools ?? [])), ...called.tools];
  const options = { ...given, ...(called.tools.length > 0 && { tools }) };
  const fields = getFields(name, options.state);
  checkFields(options, fields);
  const nodes = buildNodes({ ...options, fields, specs: options.nodes(kindsOf<Shape>()) });
  return Object.freeze({
    wire: (wiring: GraphWiring<Nodes>): GraphOf<Shape> => {
      assertOptionNames(wiring, { start: true, edges: true }, `graph ${show(name)}`);
      const { start, edges } = wiring;
      const wired = wireNodes(name, nodes, edges);
      if (!nodes.has(start)) {
        const names = [...nodes.keys()];
        throw new InputError(`graph "${name}": start: ${unknownNode(start, { names })}`);
      }
      checkGraph(name, start, wired);
      const definition: GraphDefinition = {
        start,
        nodes: wired,
        fields: [...fields.keys()],
        initial: initialValues(name, fields),
        perTurn: perTurnOf(options),
        ...named(options),
        ...(nodesJoin(wired) && { nodesJoin: true }),
      };
      return Object.freeze({
        ...agentOf(options, nodes, called.agents),
        graph: Object.freeze({
          definition: frozen(definition),
          functions: functionsOf(nodes),
          stateMisfit: (state: JsonObject, pinned: readonly string[]) =>
            stateMisfit(fields, state, pinned),
          input: inputType(fields),
          outputs: outputsOf(nodes),
        }),
      });
    },
  });
}

/** Returns the fields that each turn resets: those that are named, and that of a refusal. */
function perTurnOf({
  perTurn = [],
  refusedFrom,
}: Pick<GraphOptions, 'perTurn' | 'refusedFrom'>): readonly string[] {
  return [...new Set([...perTurn, ...(refusedFrom === undefined ? [] : [refusedFrom])])];
}

/** Returns the options that name fields, omitting absent ones. */
function named(
  options: Pick<GraphOptions, 'messageTo' | 'historyTo' | 'answerFrom' | 'refusedFrom' | 'errorTo'>,
): Partial<GraphDefinition> {
  const { messageTo, historyTo, answerFrom, refusedFrom, errorTo } = options;
  return {
    ...(messageTo !== undefined && { messageTo }),
    ...(historyTo !== undefined && { historyTo: { ...historyTo } }),
    ...(answerFrom !== undefined && { answerFrom, answerJoins: true }),
    ...(refusedFrom !== undefined && { refusedFrom }),
    ...(errorTo !== undefined && { errorTo }),
  };
}

/** Whether the graph's model reads the answers of the agents and graphs that nodes call. */
function nodesJoin(nodes: readonly GraphNode[]): boolean {
  const reads = nodes.some(
    (node) => callsModel(node) && !(node.kind === 'decide' && node.message !== undefined),
  );
  const answers = nodes.some((node) => {
    const { kind } = node.kind === 'each' ? node.body : node;
    return kind === 'agent' || kind === 'graph';
  });
  return reads && answers;
}

/** Throws an `InputError` if an option names a field that the state does not have. */
function checkFields(
  options: Pick<
    GraphOptions,
    'name' | 'messageTo' | 'historyTo' | 'answerFrom' | 'refusedFrom' | 'errorTo' | 'perTurn'
  >,
  fields: StateFields,
): void {
  const { messageTo, historyTo, answerFrom, refusedFrom, errorTo, perTurn = [] } = options;
  const given = [
    ...Object.entries({ messageTo, 'historyTo.field': historyTo?.field }),
    ...Object.entries({ answerFrom, refusedFrom, errorTo }),
    ...perTurn.map((field) => ['perTurn', field] as const),
  ];
  for (const [option, field] of given) {
    if (field === undefined || fields.has(field)) continue;
    throw new InputError(unknownField(`graph "${options.name}": ${option} names`, fields, field));
  }
}

/** Returns the graph as an agent, with the tools of its nodes and the agents that they call. */
function agentOf(
  options: Omit<GraphOptions, 'nodes' | 'state'>,
  nodes: ReadonlyMap<string, BuiltNode>,
  called: readonly Agent[],
): Agent<never> {
  const { name, decide, tools = [] } = options;
  const planning = planningOf(nodes);
  const instructions = withPlanning(options.instructions ?? '', planning);
  const used = [...nodes.values()].flatMap((node): readonly Tool[] => node.tools);
  const agent = defineAgent<never>({
    name,
    instructions,
    tools: [...new Set([...tools, ...used])],
    ...(planning === 'catalog' && { toolExposure: 'catalog' as const }),
    ...(decide !== undefined && { decide }),
    ...passedOptions(options),
  });
  return { ...agent, agents: servedAgents(name, nodes, called) };
}

/** Returns how the graph plans; undefined if it does not. All its plan nodes share one prompt. */
function planningOf(nodes: ReadonlyMap<string, BuiltNode>): PlanNode['planning'] | undefined {
  const kinds = [...nodes.values()].flatMap(({ kind }) => (kind.kind === 'plan' ? [kind] : []));
  return kinds[0]?.planning;
}

/** Adds the instructions for planning; a template gets them verbatim. */
function withPlanning(
  given: AgentOptions['instructions'],
  planning: PlanNode['planning'] | undefined,
): AgentOptions['instructions'] {
  const added = planInstructions(planning);
  return typeof given === 'string' && added !== '' ? `${given}\n\n${added}` : given;
}

/** `key`: the property of a reference that holds the id of the action. */
const references = (key: string): string =>
  `Where an argument needs the result of an earlier action, write {"${key}":"a1","path":"data.id"} in its ` +
  'place. `path` selects a part of the result; leave it empty to use the whole result. Never guess an id that a ' +
  'result will have. Refer only to actions of this plan, and only to earlier ones.';

const SCHEMA =
  'You plan, and the system executes. When you are asked for a plan, answer only with JSON such as ' +
  '{"actions":[{"id":"a1","tool":"NAME","arguments":{…},"after":[]}]}. Each action is one tool call ' +
  "with arguments that match the tool's schema. List in `after` the actions that must finish first, in " +
  'addition to those that the arguments refer to; independent actions run in parallel. If there is ' +
  'nothing to do, answer {"actions":[],"answer":"…"} with your answer to the user.';

const CATALOG =
  'You plan, and the system executes. Find the tools that you need, then call each with invoke_tool, in ' +
  'the order in which the actions should happen. Read-only calls are executed immediately, and you get ' +
  'their results as r1, r2, …, in the order of the calls. All other calls are added to the plan and have ' +
  'no result yet. When the plan is complete, say in one sentence what it does. If there is nothing to do, answer the user.';

const CONSENT =
  'The system asks for approval where needed. Plan what was requested, and do not ask for consent yourself.';

/** Returns the planning instructions for a graph's model; empty for a graph without a plan. */
function planInstructions(planning: PlanNode['planning'] | undefined): string {
  if (planning === undefined) return '';
  const isSchema = planning === 'schema';
  return [isSchema ? SCHEMA : CATALOG, references(isSchema ? 'from' : '$ref'), CONSENT].join('\n');
}

/** Returns the agents that a graph's model may call, and the tools for that. */
function calledAgents({ name, agents = [] }: Pick<GraphOptions, 'name' | 'agents'>): {
  readonly agents: readonly Agent[];
  readonly tools: readonly Tool[];
} {
  if (!Array.isArray(agents)) {
    throw new InputError(`graph "${name}": agents: expected a list of agents, got ${show(agents)}`);
  }
  const entries = agents.map(calledEntry);
  for (const [index, { agent }] of entries.entries()) {
    assertAgent(agent, `graph "${name}": agents[${index}]`);
  }
  return {
    agents: entries.map(({ agent }) => agent),
    tools: entries.map((entry) => callingTool(name, entry)),
  };
}

/**
 * Returns the agents that nodes or the model call, as objects. Throws an `InputError` if two share a
 * name.
 */
function servedAgents(
  name: string,
  nodes: ReadonlyMap<string, BuiltNode>,
  called: readonly Agent[],
): readonly Agent[] {
  const agents = [...new Set([...called, ...[...nodes.values()].flatMap((node) => node.agents)])];
  const twice = agents.find(
    (agent, index) => agents.findIndex((one) => one.name === agent.name) < index,
  );
  if (twice === undefined) return agents;
  throw new InputError(
    `graph "${name}": two agents are named ${show(twice.name)}; rename one of them`,
  );
}

function functionsOf(nodes: ReadonlyMap<string, BuiltNode>): ReadonlyMap<string, NodeFunction> {
  return new Map([...nodes].flatMap(([name, { run }]) => (run === undefined ? [] : [[name, run]])));
}

function outputsOf(nodes: ReadonlyMap<string, BuiltNode>): ReadonlyMap<string, AnswerContract> {
  return new Map(
    [...nodes].flatMap(([name, { output }]) => (output === undefined ? [] : [[name, output]])),
  );
}

/** Freezes data with everything inside it, and returns it. */
function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}
