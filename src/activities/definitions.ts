import { LRUCache } from 'lru-cache';
import type { AgentCatalog, LoadedAgent } from '../agents/catalog.js';
import type { AgentDefinition } from '../core/definition.js';
import { createToolRegistry } from '../tools/registry.js';

/** A pinned definition with the code that this worker has for it now. */
export interface PinnedAgent extends LoadedAgent {
  /** The worker's agent is the pinned one; else tools may be missing or changed. */
  readonly current: boolean;
}

export interface DefinitionCache {
  /** The definition of this hash: from the worker's agents, else by `ask`, the run's own query. */
  find(hash: string, ask: () => Promise<AgentDefinition>): Promise<PinnedAgent>;
}

const KEPT = 500;

export function createDefinitionCache(agents: AgentCatalog): DefinitionCache {
  const asked = new LRUCache<string, AgentDefinition>({ max: KEPT });
  return {
    async find(hash, ask) {
      const registered = agents.hashed(hash);
      if (registered !== undefined) return { ...registered, current: true };
      const definition = asked.get(hash) ?? (await ask());
      asked.set(hash, definition);
      const tools = agents.named(definition.name)?.tools ?? createToolRegistry([]);
      return { definition, tools, current: false };
    },
  };
}
