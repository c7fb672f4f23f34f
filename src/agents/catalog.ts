import { InputError } from '../core/errors.js';
import type { AgentDefinition } from '../core/definition/definition.js';
import { callsModel } from '../core/graph/node-tool.js';
import { createToolRegistry, type ToolRegistry } from '../tools/registry.js';
import type { Tool } from '../tools/tool.js';
import { toAgentDefinition } from './agent-definition.js';
import type { Agent } from './agent.js';

/** This worker's current version of an agent: the data to pin, and its code. */
export interface LoadedAgent {
  readonly definition: AgentDefinition;
  readonly tools: ToolRegistry;
  readonly agent: Agent;
}

/** The agents that a worker serves. */
export interface AgentCatalog {
  /** Finds an agent by its name. */
  named(name: string): LoadedAgent | undefined;
  /**
   * Finds an agent by the content hash of its definition; undefined if this worker has another
   * version.
   */
  hashed(hash: string): LoadedAgent | undefined;
  /** All names, sorted. */
  readonly names: readonly string[];
}

/** Definitions are limited because the history of every run contains one. */
const MAX_DEFINITION_BYTES = 256 * 1024;

/**
 * Makes the catalog of a worker's agents and of those that they call. Each agent that has tools
 * also gets the `builtIn` ones, such as `read_result`. Throws an `InputError` if two agents share a
 * name.
 */
export function createAgentCatalog(
  agents: readonly Agent[],
  options: { defaultModel: string; builtIn: readonly Tool[] },
): AgentCatalog {
  const byName = new Map<string, LoadedAgent>();
  for (const agent of withCalled(agents)) {
    if (byName.has(agent.name)) {
      throw new InputError(
        `agents: expected different names, got "${agent.name}" twice; rename one`,
      );
    }
    const own = agent.tools.tools;
    const none = own.length === 0 && agent.mcp.length === 0;
    const tools = none ? agent.tools : createToolRegistry([...own, ...options.builtIn]);
    const model = agent.model ?? (needsModel(agent) ? options.defaultModel : 'none');
    const definition = toAgentDefinition(agent, { model, tools: tools.tools });
    refuseLarge(definition);
    byName.set(agent.name, { definition, tools, agent });
  }
  const byHash = new Map([...byName.values()].map((loaded) => [loaded.definition.hash, loaded]));
  return {
    named: (name) => byName.get(name),
    hashed: (hash) => byHash.get(hash),
    names: [...byName.keys()].toSorted(),
  };
}

/** Whether an agent ever calls a model. */
export function needsModel({ decide, graph }: Agent): boolean {
  if (typeof decide === 'function') return false;
  return graph === undefined || graph.definition.nodes.some(callsModel);
}

/** Returns the agents and all agents that they call, without duplicates. */
export function withCalled(agents: readonly Agent[]): readonly Agent[] {
  const all = new Set<Agent>();
  const add = (agent: Agent): void => {
    if (all.has(agent)) return;
    all.add(agent);
    agent.agents.forEach(add);
  };
  agents.forEach(add);
  return [...all];
}

/** Throws an `InputError` if a definition is too large to be pinned. */
export function refuseLarge(definition: AgentDefinition): void {
  const bytes = Buffer.byteLength(JSON.stringify(definition));
  if (bytes <= MAX_DEFINITION_BYTES) return;
  throw new InputError(
    `agent "${definition.name}": its definition (instructions and tool schemas) has ${bytes} bytes, ` +
      `more than ${MAX_DEFINITION_BYTES}; shorten the instructions, or let a tool read them` +
      (definition.mcp === undefined
        ? ''
        : ', or allow fewer tools of its MCP servers with allowTools'),
  );
}
