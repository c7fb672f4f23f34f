import { NO_MODEL } from '../core/definition/definition.js';
import type {
  AgentDefinition,
  McpOmission,
  McpPolicy,
  McpUsed,
  PromptDefinition,
} from '../core/definition/definition.js';
import { shorten } from '../core/text/text.js';
import type { CatalogEntry, ToolDefinition } from '../core/definition/tool-definition.js';
import { InputError } from '../core/errors.js';
import type { ClientTool } from '../core/definition/tool-definition.js';
import { computerHandler } from '../core/input/turn-settings.js';
import { definitionHash } from '../core/rules/limits.js';
import { callsModel } from '../core/definition/node-kinds.js';
import { CATALOG_NAMES } from '../core/transcript/catalog.js';
import type { McpServer } from '../mcp/mcp-server.js';
import { redactJson } from '../secrets/redact.js';
import {
  type Tool,
  type ToolRegistry,
  createToolRegistry,
  toToolDefinition,
} from '../tools/tool.js';
import type { Agent } from './agent.js';
import { addedTools } from './client-tools.js';
import type { NamedPrompt } from './prompts.js';

const SUMMARY_CHARACTERS = 160;
/** Matches up to the end of the first sentence or of the paragraph. */
const SENTENCE = /^.+?(?:[.!?](?=\s+\p{Lu})|(?=\n\s*\n)|$)/su;

/**
 * Returns a tool's entry in the catalog: the author's, or one derived from the start of its
 * description.
 */
function catalogEntryOf({
  catalog,
  description,
  effect,
}: Pick<Tool, 'catalog' | 'description' | 'effect'>): CatalogEntry {
  if (catalog !== undefined) {
    const { summary, category, actions } = catalog;
    return { summary, category, actions };
  }
  const first = SENTENCE.exec(description.trim())?.[0] ?? '';
  const summary = shorten(first.replaceAll(/\s+/g, ' '), SUMMARY_CHARACTERS);
  return { summary, category: 'other', actions: [effect === 'read' ? 'read' : 'write'] };
}

/** Throws an `InputError` if an agent cannot expose its tools as a catalog. */
export function refuseCatalog(
  agent: string,
  { decide, names }: { readonly decide: unknown; readonly names: readonly string[] },
): void {
  if (typeof decide === 'function') {
    throw new InputError(
      `agent "${agent}": toolExposure "catalog" is for models; a decide function gets all tools, omit it`,
    );
  }
  const reserved = names.find((name) => CATALOG_NAMES.includes(name));
  if (reserved === undefined) return;
  throw new InputError(
    `agent "${agent}": with toolExposure "catalog" the engine itself uses the name "${reserved}"; rename that tool`,
  );
}

/** Returns the agent as data with its content hash, which a run pins at its start. */
export function toAgentDefinition(
  agent: Agent,
  resolved: { model: string; tools: readonly Tool[] },
): AgentDefinition {
  const content = {
    name: agent.name,
    instructions: agent.instructions,
    model: resolved.model,
    ...(agent.fallbacks.length > 0 && { fallbacks: agent.fallbacks }),
    tools: resolved.tools.map((tool) => pinned(tool, agent)),
    toolChoice: agent.toolChoice,
    // A decision in a graph takes exactly one exit.
    toolCalls: agent.graph === undefined ? agent.toolCalls : ('first' as const),
    onLimit: agent.onLimit,
    limits: agent.limits,
    settings: agent.settings,
    ...(agent.callSettings && { callSettings: agent.callSettings }),
    ...(agent.compaction !== undefined && { compaction: agent.compaction }),
    // Omits defaults, so an agent without these options keeps its hash.
    ...(agent.answer && { output: agent.answer.definition }),
    ...(agent.attempts !== null && { attempts: agent.attempts }),
    ...(agent.onInvalid === 'best_effort' && { onInvalid: agent.onInvalid }),
    ...(agent.decide !== 'tools' && { decide: kindOfDecision(agent.decide) }),
    ...(agent.toolExposure === 'catalog' && { toolExposure: agent.toolExposure }),
    ...(agent.retrieve && { retrieve: { timeoutMs: agent.retrieve.timeoutMs } }),
    ...(agent.remember && { remember: { timeoutMs: agent.remember.timeoutMs } }),
    ...(agent.onPlainText === 'fail' && { onPlainText: agent.onPlainText }),
    ...(agent.forkFrom.length > 0 && { forkFrom: agent.forkFrom }),
    ...(agent.rules.length > 0 && { rules: agent.rules }),
    ...(agent.texts && { texts: agent.texts }),
    ...(agent.mcp.length > 0 && { mcp: { servers: agent.mcp.map(policyOf) } }),
    ...(agent.graph && { graph: agent.graph.definition }),
    ...(agent.prompts && { prompts: promptsOf(agent, resolved.tools) }),
  };
  return withHash(content);
}

/**
 * Returns the prompts as data. Each non-empty selection of tools also includes those that the
 * engine adds.
 */
function promptsOf(
  { prompts = new Map<string, NamedPrompt>(), tools: own }: Agent,
  tools: readonly Tool[],
): Readonly<Record<string, PromptDefinition>> {
  const added = tools.flatMap(({ name }) => (own.names.includes(name) ? [] : [name]));
  const entries = [...prompts].map(([name, { definition }]): [string, PromptDefinition] => {
    const { tools: chosen = [] } = definition;
    if (chosen.length === 0) return [name, definition];
    return [name, { ...definition, tools: [...chosen, ...added].toSorted() }];
  });
  return Object.fromEntries(entries);
}

/**
 * Returns a tool as data. A catalog lists the agent's own tools, not those that the engine adds.
 */
function pinned(tool: Tool, { toolExposure, tools, settings, graph }: Agent): ToolDefinition {
  const isScreen = tool.name === computerHandler(settings);
  const definition: ToolDefinition = {
    ...toToolDefinition(tool),
    // Two identical clicks are two separate actions.
    ...(isScreen && { repeat: 'allow' }),
    // A graph saves what its tools return.
    ...(graph && { value: true }),
  };
  const isListed = toolExposure === 'catalog' && tools.get(tool.name) === tool;
  return isListed ? { ...definition, catalog: catalogEntryOf(tool) } : definition;
}

/**
 * Returns the definition of a run whose instructions are a template, filled in with its arguments.
 */
export function filledDefinition(
  definition: AgentDefinition,
  filled: { instructions: string; template: string },
): AgentDefinition {
  const { hash: unfilled, ...content } = definition;
  const { instructions, template: hash } = filled;
  return withHash({ ...content, instructions, template: { hash, unfilled } });
}

/**
 * Returns the definition of a run whose MCP servers have listed their tools. `unlisted` is the hash
 * of the definition without them. Throws an `Error` if two tools share a name.
 */
export function listedDefinition(
  definition: AgentDefinition,
  listed: { unlisted: string; tools: readonly ToolDefinition[]; left: readonly McpOmission[] },
): AgentDefinition {
  const { hash: _, ...content } = definition;
  const { unlisted, left } = listed;
  const found = content.toolExposure === 'catalog' ? listed.tools.map(inCatalog) : listed.tools;
  const tools = [...content.tools, ...found].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const twice = tools.find(({ name }, index) => tools[index + 1]?.name === name);
  if (twice !== undefined) {
    throw new Error(
      `agent "${content.name}": two tools are named "${twice.name}", one of them of MCP server ` +
        `"${serverOf(listed.tools, twice.name)}"; rename the other one, or exclude this one with denyTools`,
    );
  }
  const servers = content.mcp?.servers ?? [];
  const mcp: McpUsed = { servers, unlisted, ...(left.length > 0 && { left }) };
  return withHash({ ...content, tools, mcp });
}

/** Returns the tool with its catalog entry; each server, and the caller, is a category of its own. */
function inCatalog(tool: ToolDefinition): ToolDefinition {
  const { summary, actions } = catalogEntryOf(tool);
  const category = tool.caller ? 'caller' : (tool.mcp?.server ?? 'other');
  return { ...tool, catalog: { summary, category, actions } };
}

/**
 * Returns the definition of a run whose caller has added tools. `without` is the hash of the agent's
 * definition as its worker has it. Throws an `InputError` if a tool cannot be added.
 */
export function extendedDefinition(
  definition: AgentDefinition,
  {
    without,
    given,
    builtIn,
  }: {
    readonly without: string;
    readonly given: readonly ClientTool[];
    readonly builtIn: readonly Tool[];
  },
): AgentDefinition {
  const { hash: _, ...content } = definition;
  const isCatalog = content.toolExposure === 'catalog';
  const added = addedTools(definition, given);
  if (added.length === 0) return definition;
  const known = content.tools.length === 0 ? builtIn.map(toToolDefinition) : content.tools;
  const tools = [...known, ...(isCatalog ? added.map(inCatalog) : added)].toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  const callerTools = { names: added.map(({ name }) => name), without };
  return withHash({ ...content, tools, callerTools });
}

/** Returns the hash of the agent's own definition, from which that of a run may be derived. */
export function ownHash({ callerTools, mcp, template, hash }: AgentDefinition): string {
  return callerTools?.without ?? mcp?.unlisted ?? template?.unfilled ?? hash;
}

function serverOf(tools: readonly ToolDefinition[], name: string): string {
  return tools.find((tool) => tool.name === name)?.mcp?.server ?? '';
}

function policyOf({ name, allowTools, denyTools, effects, startup }: McpServer): McpPolicy {
  return {
    name,
    ...(allowTools !== null && { allowTools }),
    ...(denyTools.length > 0 && { denyTools }),
    ...(Object.keys(effects).length > 0 && { effects }),
    ...(startup === 'best_effort' && { startup }),
  };
}

function withHash(content: Omit<AgentDefinition, 'hash'>): AgentDefinition {
  // A worker's secret in instructions would enter the history of every run. The hash covers the
  // pinned form.
  const safe = redactJson(content);
  return { ...safe, hash: definitionHash(safe) };
}

function kindOfDecision(decide: Exclude<Agent['decide'], 'tools'>): 'schema' | 'function' {
  return decide === 'schema' ? decide : 'function';
}

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
  /** The tools that each agent with tools gets. */
  readonly builtIn: readonly Tool[];
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
    const model = agent.model ?? (needsModel(agent) ? options.defaultModel : NO_MODEL);
    const definition = toAgentDefinition(agent, { model, tools: tools.tools });
    refuseLarge(definition);
    byName.set(agent.name, { definition, tools, agent });
  }
  const byHash = new Map([...byName.values()].map((loaded) => [loaded.definition.hash, loaded]));
  return {
    named: (name) => byName.get(name),
    hashed: (hash) => byHash.get(hash),
    names: [...byName.keys()].toSorted(),
    builtIn: options.builtIn,
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
