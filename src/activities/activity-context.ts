import { ApplicationFailure } from '@temporalio/common';
import { LRUCache } from 'lru-cache';
import { type AgentCatalog, ownHash } from '../agents/agent-definition.js';
import type { MayDecide, NotifyFunction } from '../agents/agent-parts.js';
import type { Agent } from '../agents/agent.js';
import { withCallerTools } from '../agents/client-tools.js';
import type { AgentDefinition } from '../core/definition/definition.js';
import type { PlanNode } from '../core/definition/node-data.js';
import type { Rule } from '../core/definition/rules.js';
import { type ContextFields, withTurnContext } from '../core/input/turn-context.js';
import type { SegmentSize } from '../core/state/state.js';
import { type DefinitionVariant, definitionFor, findNode } from '../core/state/turn-definition.js';
import type { Json } from '../core/text/json.js';
import type { LiveHub } from '../live/hub.js';
import type { McpSessions } from '../mcp/session.js';
import type { ModelCatalog } from '../models/model-catalog.js';
import type { Archive, BlobStore } from '../storage/blob-store.js';
import { ForeignContextError, readContext } from '../storage/owned-text.js';
import type { ToolLock } from '../storage/tool-lock.js';
import { type ToolRegistry, createToolRegistry } from '../tools/tool.js';
import type { TranscriptCache } from './model/transcript-cache.js';

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

interface DefinitionCache {
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
      const own = named?.tools ?? createToolRegistry([]);
      const { builtIn } = agents;
      const tools = withCallerTools(own, { definition, builtIn });
      // Template arguments and the tools of MCP servers and of callers differ from run to run;
      // everything else must be equal.
      const current = named !== undefined && named.definition.hash === ownHash(definition);
      return { definition, tools, agent: named?.agent, current };
    },
  };
}

/** The worker's settings for requests, in addition to the rules of agents and runs. */
export interface RequestDependencies {
  readonly rules: readonly Rule[];
  /** Absent: only the rules determine the deciders. */
  readonly mayDecide?: MayDecide;
  /** Absent: no notices are sent. */
  readonly notify?: NotifyFunction | Webhook;
}

/** An address for notices, with the key of their signatures. */
export interface Webhook {
  readonly url: string;
  readonly key: Uint8Array;
}

/** What the worker provides to its activities. */
export interface ActivityDependencies {
  readonly agents: AgentCatalog;
  readonly models: ModelCatalog;
  readonly blobs: BlobStore;
  readonly archive: Archive;
  readonly toolLock: ToolLock;
  readonly transcripts: TranscriptCache;
  readonly definitions: DefinitionCache;
  readonly mcp: McpSessions;
  /** Size of a segment of the history; absent: the default of the engine. */
  readonly segment?: SegmentSize;
  /** Heartbeat timeout of model calls and retrievals in ms; absent: the default. */
  readonly heartbeatMs?: number;
  /** Returns the names of the namespace's search attributes; they are looked up once. */
  readonly searchAttributes: () => Promise<readonly string[]>;
  /** Streams replies in progress to readers; absent: replies are not streamed. */
  readonly live?: LiveHub;
  /** The worker's settings for requests. */
  readonly requests: RequestDependencies;
  /** Whether spans contain message content; default false. */
  readonly captureContent?: boolean;
  /** Aborts when the worker begins to shut down. */
  readonly stopping: AbortSignal;
}

/**
 * Returns the run's `context`, inline or from the blob store, combined with that of the turn; null
 * if there is none. Rejects with a `BlobError`, or with a nonretryable failure if the context
 * belongs to a run that is not a caller of this one.
 */
export async function readRunContext(
  { context = null, contextBlob, turnContext }: ContextFields,
  blobs: BlobStore,
): Promise<Json> {
  if (contextBlob === undefined) return withTurnContext(context, turnContext);
  try {
    return withTurnContext(await readContext(blobs, contextBlob), turnContext);
  } catch (error) {
    if (!(error instanceof ForeignContextError)) throw error;
    throw ApplicationFailure.nonRetryable(error.message, 'ForeignContext');
  }
}
