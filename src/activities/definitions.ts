import { LRUCache } from 'lru-cache';
import type { AgentCatalog } from '../agents/catalog.js';
import type { Agent } from '../agents/define-agent.js';
import type { AgentDefinition } from '../core/definition/definition.js';
import { createToolRegistry, type ToolRegistry } from '../tools/registry.js';

/** A pinned definition with the code that this worker has for it now. */
export interface PinnedAgent {
  readonly definition: AgentDefinition;
  readonly tools: ToolRegistry;
  /** The worker's agent of this name; undefined where it has none any more. */
  readonly agent: Agent | undefined;
  /** The worker's agent is the pinned one; else tools may be missing or changed. */
  readonly current: boolean;
}

export interface DefinitionCache {
  /** The definition of this hash: from the worker's agents, else by `ask`, the run's own query. */
  find(hash: string, ask: () => Promise<AgentDefinition>): Promise<PinnedAgent>;
  /** A definition that was made for one run, and that this worker will be asked for. */
  note(definition: AgentDefinition): void;
}

const KEPT = 500;

export function createDefinitionCache(agents: AgentCatalog): DefinitionCache {
  const asked = new LRUCache<string, AgentDefinition>({ max: KEPT });
  return {
    note: (definition) => void asked.set(definition.hash, definition),
    async find(hash, ask) {
      const registered = agents.hashed(hash);
      if (registered !== undefined) return { ...registered, current: true };
      const definition = asked.get(hash) ?? (await ask());
      asked.set(hash, definition);
      const named = agents.named(definition.name);
      const tools = named?.tools ?? createToolRegistry([]);
      // A template's arguments, and what MCP servers listed, are the run's own; the rest is the agent as it is.
      const current = named !== undefined && named.definition.hash === agentsOwn(definition);
      return { definition, tools, agent: named?.agent, current };
    },
  };
}

/** The hash of what the definition was made of. */
function agentsOwn({ mcp, template }: AgentDefinition): string | undefined {
  return mcp?.unlisted ?? template?.unfilled;
}
