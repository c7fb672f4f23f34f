import type { AgentDefinition } from '../core/definition/definition.js';
import { createToolRegistry, type ToolRegistry } from '../tools/registry.js';
import type { Tool } from '../tools/tool.js';
import { toAgentDefinition } from './agent-definition.js';
import type { Agent } from './agent.js';

/** An agent as this worker has it now: the data to pin, and the code behind it. */
export interface LoadedAgent {
  readonly definition: AgentDefinition;
  readonly tools: ToolRegistry;
  readonly agent: Agent;
}

export interface AgentCatalog {
  /** By the agent's name. */
  named(name: string): LoadedAgent | undefined;
  /** By the content hash of the definition; undefined when this worker has moved on. */
  hashed(hash: string): LoadedAgent | undefined;
  readonly names: readonly string[];
}

/** A definition is pinned in the history of every run. */
const MAX_DEFINITION_BYTES = 256 * 1024;

/**
 * The agents of a worker. `builtIn` tools (such as `read_result`) are given to each agent that has
 * tools. Throws when two agents share a name.
 */
export function createAgentCatalog(
  agents: readonly Agent[],
  options: { defaultModel: string; builtIn: readonly Tool[] },
): AgentCatalog {
  const byName = new Map<string, LoadedAgent>();
  for (const agent of withCalled(agents)) {
    if (byName.has(agent.name)) {
      throw new Error(`two agents are named "${agent.name}"; rename one of them`);
    }
    const own = agent.tools.tools;
    const none = own.length === 0 && agent.mcp.length === 0;
    const tools = none ? agent.tools : createToolRegistry([...own, ...options.builtIn]);
    const model =
      agent.model ?? (typeof agent.decide === 'function' ? 'none' : options.defaultModel);
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

/** The agents and, once each, those that they call. */
function withCalled(agents: readonly Agent[]): readonly Agent[] {
  const all = new Set<Agent>();
  const add = (agent: Agent): void => {
    if (all.has(agent)) return;
    all.add(agent);
    agent.agents.forEach(add);
  };
  agents.forEach(add);
  return [...all];
}

/** Throws where a definition is too large to be pinned. */
export function refuseLarge(definition: AgentDefinition): void {
  const bytes = Buffer.byteLength(JSON.stringify(definition));
  if (bytes <= MAX_DEFINITION_BYTES) return;
  throw new Error(
    `agent "${definition.name}": its definition (instructions and tool schemas) has ${bytes} bytes, ` +
      `more than ${MAX_DEFINITION_BYTES}; shorten the instructions, or let a tool read them` +
      (definition.mcp === undefined
        ? ''
        : ', or take fewer tools of its MCP servers by allowTools'),
  );
}
