import type { AgentDefinition } from '../definition/definition.js';
import type { GraphDefinition } from '../definition/graph-definition.js';
import { type GraphNode, callsModel, ownTool, takesTime } from '../definition/node-kinds.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import { findPrompt } from '../input/named-prompt.js';
import type { JsonObject } from '../text/json.js';
import type { ToolCall } from '../transcript/messages.js';
import { type GraphState, HEARTBEAT_MS, type RunState, keepsEarlierMeaning } from './state.js';
import { callSummary, visible } from './summaries.js';
import { getOpenBatch } from './turn.js';

/** The prefix of a node's own work in front of its name. No tool can have such a name. */
const PREFIX = 'node:';

/** Returns the name of the calls that perform a node's work. */
export function nodeCallName(node: string): string {
  return `${PREFIX}${node}`;
}

/** Returns the name of the node whose work a call performs; null for a tool call. */
export function nodeOfCall({ name }: { readonly name: string }): string | null {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : null;
}

/** Returns the beginning of the ids of the calls that a node makes itself in one of its visits. */
export function nodeCallId(node: string, { at }: Pick<GraphState, 'at'>): string {
  return `node_${node}_${at?.visit ?? 1}`;
}

/** Returns the node of a graph that makes a call itself, by the call's id; null for a call of a model. */
export function nodeOfCallId(id: string): string | null {
  return /^node_(.+?)_\d+(?:_\d+|\..+)$/.exec(id)?.[1] ?? null;
}

/**
 * Returns the number of the item, from 1, for which a call executes the function of an `each`; null
 * for any other call.
 */
export function itemOfCall(
  { graph }: Pick<AgentDefinition, 'graph'>,
  { id, name }: { readonly id: string; readonly name: string },
): number | null {
  const node = graph && findNode(graph, nodeOfCall({ name }) ?? '');
  if (node?.kind !== 'each') return null;
  return Number(id.slice(id.lastIndexOf('_') + 1)) + 1;
}

/**
 * Returns the work of a node as people see it, such as `node sum` or, for an item of an `each`, `node sum, item
 * 2`; null for a tool call.
 */
export function nodeWorkName(
  definition: Pick<AgentDefinition, 'graph'> | undefined,
  call: { readonly id: string; readonly name: string },
): string | null {
  const node = nodeOfCall(call);
  if (node === null) return null;
  const item = definition === undefined ? null : itemOfCall(definition, call);
  return item === null ? `node ${node}` : `node ${node}, item ${item}`;
}

/** Returns the work of a call as people see it: that of a node by its name, any other by the tool and its arguments. */
export function workText(
  definition: Pick<AgentDefinition, 'graph'> | undefined,
  call: ToolCall,
): string {
  return visible(nodeWorkName(definition, call) ?? callSummary(call));
}

/** Returns the name of a tool as people see it, or that of the node whose work it is, such as `node sum`. */
export function toolText(tool: { readonly name: string }): string {
  const node = nodeOfCall(tool);
  return node === null ? tool.name : `node ${node}`;
}

/** Returns the node with this name; undefined if there is none. */
export function findNode(graph: GraphDefinition, name: string): GraphNode | undefined {
  return graph.nodes.find((node) => node.name === name);
}

/** Whether a node is left by the exit `expired` if its question expires. */
export function leavesByExpired(node: GraphNode): boolean {
  return node.kind === 'confirm' && node.exits.some(({ name }) => name === 'expired');
}

/** What the work of all nodes has in common. A called agent and a person's decision have no timeout. */
const NODE_TOOL = {
  description: '',
  parameters: {},
  effect: 'keyed',
  repeat: 'allow',
  value: true,
  heartbeatMs: HEARTBEAT_MS,
  timeoutMs: 0,
  attempts: 1,
} as const;

/**
 * Returns how the work of a node is executed, in the form of a tool. The engine therefore retries,
 * blocks, cancels, pauses, and passes on a node in the same way as a call.
 */
function nodeTool(graph: GraphDefinition, callName: string): ToolDefinition | undefined {
  const node = findNode(graph, nodeOfCall({ name: callName }) ?? '');
  const own = node && ownTool(node.kind === 'each' ? node.body : node);
  return own && { name: callName, ...NODE_TOOL, ...own };
}

/** Returns a tool of a definition, or the work of a node of its graph, by the name of its calls. */
export function definedTool(
  { tools, graph }: Pick<AgentDefinition, 'tools' | 'graph'>,
  name: string,
): ToolDefinition | undefined {
  return tools.find((tool) => tool.name === name) ?? (graph && nodeTool(graph, name));
}

/**
 * Returns how a call of a node is executed: the node may set a shorter timeout, and fewer or more
 * attempts, than the tool. A `once` call is never retried.
 */
export function toolAt(
  { graph }: Pick<AgentDefinition, 'graph'>,
  tool: ToolDefinition,
  { node: name }: { readonly node?: string },
): ToolDefinition {
  const node = graph && name !== undefined ? findNode(graph, name) : undefined;
  const work = node?.kind === 'each' ? node.body : node;
  const timeoutMs = work && 'timeoutMs' in work ? work.timeoutMs : undefined;
  const attempts = work && 'attempts' in work && work.kind === 'tool' ? work.attempts : undefined;
  return {
    ...tool,
    ...(timeoutMs !== undefined &&
      tool.timeoutMs > 0 && { timeoutMs: Math.min(timeoutMs, tool.timeoutMs) }),
    ...(attempts !== undefined && tool.effect !== 'once' && { attempts }),
  };
}

/** Returns the maximum duration of a called agent at a node in ms; null if the node sets none. */
export function calledMs(state: RunState): number | null {
  const node = currentNode(state);
  const work = node?.kind === 'each' ? node.body : node;
  return work?.kind === 'agent' || work?.kind === 'graph' ? (work.timeoutMs ?? null) : null;
}

/** Returns the run's pinned graph; undefined for a run of an agent. */
export function graphOf({ config }: Pick<RunState, 'config'>): GraphDefinition | undefined {
  return config.definition.graph;
}

/** Returns the run's current node; undefined between turns and for a run of an agent. */
export function currentNode(state: RunState): GraphNode | undefined {
  const graph = graphOf(state);
  return graph && state.graph?.at ? findNode(graph, state.graph.at.node) : undefined;
}

/** Whether the current node's work is due next. Some nodes need a model call instead. */
export function nodeDue(state: RunState): boolean {
  const node = currentNode(state);
  const { phase, limit } = state.turn;
  return node !== undefined && !callsModel(node) && phase.type === 'deciding' && limit === null;
}

/** Whether the calls of the open batch were made by the current node, not by a model. */
export function isNodeBatch(state: RunState): boolean {
  const node = currentNode(state);
  if (node === undefined || callsModel(node)) return false;
  return getOpenBatch(state)?.calls.every((call) => call.node !== undefined) ?? false;
}

/** Whether a node executes the call of the preceding `decide`. */
export function isOfDecide(node: GraphNode): boolean {
  return node.kind === 'tool' && node.arguments === undefined;
}

/** Whether the run has its own model; a graph without `decide` has none. */
export function hasModel(state: RunState): boolean {
  const graph = graphOf(state);
  return graph === undefined || graph.nodes.some(callsModel);
}

/** Returns the number of all visits of a run's nodes; 0 for a run of an agent. */
export function visitsOf(graph: RunState['graph']): number {
  return (graph?.visited ?? []).reduce((sum, { total }) => sum + total, 0);
}

/**
 * Returns the number of steps of the current turn, as the status, the outcome, and the command show
 * it. A step is a reply of the run's model that decides or answers, or, in a graph, a visit of a
 * node that works without the graph's model: its function, its agent, its graph, its items, its
 * tool, or its question to a person. The limit `steps` counts the replies alone, and so does a run
 * that began with an earlier version.
 */
export function stepsOf(state: RunState): number {
  const graph = graphOf(state);
  if (graph === undefined || keepsEarlierMeaning(state, {})) return state.turn.spent.steps;
  const visits = (state.graph?.visited ?? []).filter(({ node }) => {
    const found = findNode(graph, node);
    return found !== undefined && isStep(found);
  });
  return state.turn.spent.steps + visits.reduce((sum, { inTurn }) => sum + inTurn, 0);
}

/** Whether a visit of the node is a step. A model's reply counts itself. */
function isStep(node: GraphNode): boolean {
  return takesTime(node) && !callsModel(node) && !isOfDecide(node);
}

/** The progress of the calls of one visit. */
export interface CallProgress {
  readonly node: string;
  /** The number of calls that have ended, and how many of those have failed. */
  readonly done: number;
  readonly failed: number;
  readonly total: number;
}

/** Returns the progress of the items of an `each`; null at any other node. */
export function itemProgress(state: RunState): CallProgress | null {
  const node = currentNode(state);
  const batch = getOpenBatch(state);
  if (node?.kind !== 'each' || batch === null) return null;
  const ended = batch.results.filter((result) => result !== null);
  const failed = ended.filter(({ ok }) => !ok).length;
  return { node: node.name, done: ended.length, failed, total: batch.calls.length };
}

/** Returns the number of the step under way: the next one before the model has replied. */
export function currentStep(state: RunState): number {
  const node = currentNode(state);
  const { phase } = state.turn;
  const isOver = phase.type === 'over' || (phase.type === 'idle' && phase.outcome !== null);
  const isFull = state.turn.spent.steps >= (state.config.limits.turn.steps ?? Infinity);
  const isCounted = getOpenBatch(state) !== null || (node !== undefined && isStep(node));
  return stepsOf(state) + (isOver || isFull || isCounted ? 0 : 1);
}

/**
 * Describes a step beside the limit `steps`: `3 of 10`. In a graph, the limit counts fewer than the
 * step, so its own count is shown: `6 (replies: 1 of 2)`.
 */
export function stepOfLimit(state: RunState, step: number): string {
  const cap = state.config.limits.turn.steps ?? null;
  if (cap === null || !hasModel(state)) return `${step}`;
  if (graphOf(state) === undefined || keepsEarlierMeaning(state, {})) return `${step} of ${cap}`;
  return `${step} (replies: ${state.turn.spent.steps} of ${cap})`;
}

/** The number of calls of a model's message that are executed at the same time. */
const MODEL_CALLS_AT_ONCE = 5;

/** Returns how many calls of the open batch are executed at the same time. */
export function callsAtOnce(state: RunState): number {
  const node = currentNode(state);
  return node?.kind === 'each' || node?.kind === 'execute' ? node.atOnce : MODEL_CALLS_AT_ONCE;
}

const ids = { type: 'array', items: { type: 'string' } };

/**
 * Returns the JSON schema of a whole plan of calls of these tools. `planProblem` checks the
 * constraints that a schema cannot express. If the server enforces the schema, naming the tools
 * keeps small models from inventing some.
 */
export const planSchema = (tools: readonly string[]): JsonObject => ({
  type: 'object',
  properties: {
    actions: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string', description: 'a1, a2, …' },
          tool: { type: 'string', enum: [...tools] },
          arguments: {
            type: 'object',
            description:
              'arguments that match the tool\'s schema; {"from": "a1", "path": "data.id"} stands for a result',
          },
          after: { ...ids, description: 'actions that must finish first' },
        },
        required: ['id', 'tool', 'arguments'],
      },
    },
    answer: { type: 'string', description: 'the answer, if there is nothing to do' },
  },
  required: ['actions'],
});

/** Whether a model call at this node differs from one by the graph's own definition. */
function hasOwnDefinition(node: GraphNode): boolean {
  return node.kind === 'plan' || node.kind === 'answer' || isTyped(node);
}

function isTyped(node: GraphNode): boolean {
  return node.kind === 'decide' && (node.output ?? node.toolChoice) !== undefined;
}

/** Returns the name of the current node if its model calls differ from the graph's definition. */
function variantNode(state: RunState): string | undefined {
  const node = currentNode(state);
  return node && hasOwnDefinition(node) ? node.name : undefined;
}

/**
 * Returns the definition for model calls at a node. Instructions never differ, so prompt prefixes
 * stay stable.
 */
export function definitionAt(
  definition: AgentDefinition,
  name: string | undefined,
): AgentDefinition {
  const { graph } = definition;
  const node = name === undefined || graph === undefined ? undefined : findNode(graph, name);
  switch (node?.kind) {
    case 'decide': {
      if (node.output === undefined) {
        const { toolChoice = definition.toolChoice } = node;
        return { ...definition, toolChoice };
      }
      const { attempts, ...output } = node.output;
      return { ...definition, output: { type: 'json', ...output }, toolChoice: 'none', attempts };
    }
    case 'plan': {
      if (node.planning === 'catalog') return { ...definition, toolCalls: 'parallel' };
      const schema = planSchema(definition.tools.map((tool) => tool.name));
      const output = { type: 'json', name: 'plan', schema } as const;
      return { ...definition, output, toolChoice: 'none', attempts: node.attempts };
    }
    case 'answer':
      return { ...definition, toolChoice: 'none' };
    default:
      return definition;
  }
}

/** What makes the definition for a model call differ from the agent's own. */
export interface DefinitionVariant {
  /** The graph's node whose model calls differ from the graph's definition. */
  readonly node?: string;
  /** The prompt of the agent that the turn's message names. */
  readonly prompt?: string;
  /** Settings that the turn's messages add to those of the agent and the prompt. */
  readonly settings?: JsonObject;
}

/**
 * Returns the definition for a model call and for the check of its reply. The workflow, the worker,
 * and each reader of a history apply this rule to the pinned definition.
 */
export function definitionFor(
  definition: AgentDefinition,
  { node, prompt, settings: added }: DefinitionVariant,
): AgentDefinition {
  const own = withPrompt(definition, { node, prompt });
  return added === undefined ? own : { ...own, settings: { ...own.settings, ...added } };
}

function withPrompt(
  definition: AgentDefinition,
  { node, prompt }: { readonly node: string | undefined; readonly prompt: string | undefined },
): AgentDefinition {
  const at = definitionAt(definition, node);
  const found = findPrompt(definition, prompt);
  if (found === undefined) return at;
  const { output = at.output, attempts = at.attempts, tools, settings } = found;
  const { output: _output, attempts: _attempts, ...rest } = at;
  const own = tools && new Set(tools);
  return {
    ...rest,
    ...(output && { output }),
    ...(output && attempts !== undefined && { attempts }),
    // The tools stay in the request to keep the prompt's prefix, and because some models require
    // the tools of earlier calls.
    ...(own?.size === 0 && { toolChoice: 'none' as const }),
    ...(own && own.size > 0 && { tools: rest.tools.filter(({ name }) => own.has(name)) }),
    ...(settings && { settings: { ...rest.settings, ...settings } }),
  };
}

/** Returns the variant for the run's next model call; empty for the agent's own definition. */
export function currentVariant(state: RunState): DefinitionVariant {
  const node = variantNode(state);
  const { prompt, settings } = state.turn;
  return {
    ...(node !== undefined && { node }),
    ...(prompt !== undefined && { prompt }),
    ...(settings !== undefined && { settings }),
  };
}

/** Returns the definition for the run's next model call. */
export function currentDefinition(state: RunState): AgentDefinition {
  return definitionFor(state.config.definition, currentVariant(state));
}
