import { LRUCache } from 'lru-cache';
import type { AgentCatalog } from '../agents/catalog.js';
import type { Agent } from '../agents/agent.js';
import type { AgentDefinition } from '../core/definition/definition.js';
import { createToolRegistry, type ToolRegistry } from '../tools/registry.js';

/** A pinned definition with the code that this worker has for it. */
export interface PinnedAgent {
  readonly definition: AgentDefinition;
  readonly tools: ToolRegistry;
  /** The worker's agent of this name; undefined if it no longer has one. */
  readonly agent: Agent | undefined;
  /** Whether the worker's agent is the pinned one; if not, tools may be missing or changed. */
  readonly current: boolean;
}

export interface DefinitionCache {
  /** Returns the definition of this hash, from the worker's agents or else by `fetch`, a query of the run. */
  find(hash: string, fetch: () => Promise<AgentDefinition>): Promise<PinnedAgent>;
  /** Adds a definition that was made for one run. */
  add(definition: AgentDefinition): void;
}

const MAX_DEFINITIONS = 500;

export function createDefinitionCache(agents: AgentCatalog): DefinitionCache {
  const cached = new LRUCache<string, AgentDefinition>({ max: MAX_DEFINITIONS });
  return {
    add: (definition) => void cached.set(definition.hash, definition),
    async find(hash, fetch) {
      const registered = agents.hashed(hash);
      if (registered !== undefined) return { ...registered, current: true };
      const definition = cached.get(hash) ?? (await fetch());
      cached.set(hash, definition);
      const named = agents.named(definition.name);
      const tools = named?.tools ?? createToolRegistry([]);
      // The arguments of a template, and tools of MCP servers, differ from run to run; all else must be equal.
      const current = named !== undefined && named.definition.hash === baseHash(definition);
      return { definition, tools, agent: named?.agent, current };
    },
  };
}

/** Returns the hash of the agent's definition from which a run's definition was made. */
function baseHash({ mcp, template }: AgentDefinition): string | undefined {
  return mcp?.unlisted ?? template?.unfilled;
}
