import { LRUCache } from 'lru-cache';
import type { AgentCatalog } from '../agents/catalog.js';
import type { Agent } from '../agents/agent.js';
import type { AgentDefinition } from '../core/definition/definition.js';
import type { PlanNode } from '../core/graph/definition.js';
import { definitionFor, type DefinitionVariant } from '../core/named-prompts/turn-definition.js';
import { findNode } from '../core/graph/node-tool.js';
import { createToolRegistry, type ToolRegistry } from '../tools/registry.js';

/** A pinned definition with this worker's code for it. */
export interface PinnedAgent {
  readonly definition: AgentDefinition;
  readonly tools: ToolRegistry;
  /** The worker's agent of this name; undefined if it no longer has one. */
  readonly agent: Agent | undefined;
  /** Whether the worker's agent is the pinned one; if not, tools may be missing or changed. */
  readonly current: boolean;
  /** The graph's node whose model calls differ from the graph's definition. */
  readonly node?: string;
}

/**
 * Returns the agent with the output contract of a graph's node or of a message's prompt, and with
 * the settings of the message.
 */
export function pinnedAt(pinned: PinnedAgent, variant: DefinitionVariant): PinnedAgent {
  const { node, prompt, settings } = variant;
  if (node === undefined && prompt === undefined) {
    if (settings === undefined) return pinned;
    return { ...pinned, definition: definitionFor(pinned.definition, { settings }) };
  }
  const { agent } = pinned;
  const answer = node === undefined ? promptAnswer(agent, prompt) : agent?.graph?.outputs.get(node);
  return {
    ...pinned,
    definition: definitionFor(pinned.definition, {
      ...(node !== undefined && { node }),
      ...(prompt !== undefined && { prompt }),
      ...(settings !== undefined && { settings }),
    }),
    agent: agent && { ...agent, answer: answer ?? null },
    ...(node !== undefined && { node }),
  };
}

/** Returns the reader of a prompt's answer: its own contract, or the agent's if it has none. */
function promptAnswer(agent: Agent | undefined, name: string | undefined): Agent['answer'] {
  const prompt = name === undefined ? undefined : agent?.prompts?.get(name);
  return prompt?.answer === undefined ? (agent?.answer ?? null) : prompt.answer;
}

/** Returns the node that makes a plan in one reply; undefined for any other. */
export function planNode({ definition: { graph }, node }: PinnedAgent): PlanNode | undefined {
  const found = graph && node !== undefined ? findNode(graph, node) : undefined;
  return found?.kind === 'plan' ? found : undefined;
}

export interface DefinitionCache {
  /**
   * Returns the definition of this hash, from the worker's agents or else by `fetch`, a query of
   * the run.
   */
  find(hash: string, fetch: () => Promise<AgentDefinition>): Promise<PinnedAgent>;
  /** Adds a definition that was created for one run. */
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
      // Template arguments and the tools of MCP servers differ from run to run; everything else
      // must be equal.
      const current = named !== undefined && named.definition.hash === baseHash(definition);
      return { definition, tools, agent: named?.agent, current };
    },
  };
}

/** Returns the hash of the agent definition from which a run's definition was derived. */
function baseHash({ mcp, template }: AgentDefinition): string | undefined {
  return mcp?.unlisted ?? template?.unfilled;
}
