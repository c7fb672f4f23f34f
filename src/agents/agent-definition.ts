import type {
  AgentDefinition,
  McpOmission,
  McpPolicy,
  McpUsed,
  PromptDefinition,
} from '../core/definition/definition.js';
import type { ToolDefinition } from '../core/definition/tool-definition.js';
import { definitionHash } from '../core/definition/hash.js';
import { computerHandler } from '../core/definition/native-tools.js';
import type { McpServer } from '../mcp/mcp-server.js';
import { redactJson } from '../secrets/redact-json.js';
import { toToolDefinition } from '../tools/tool-definition.js';
import type { Tool } from '../tools/tool.js';
import { catalogEntryOf } from './catalog-entry.js';
import type { Agent } from './agent.js';
import type { NamedPrompt } from './prompts.js';

/** Returns the agent as data with its content hash, which a run pins at its start. */
export function toAgentDefinition(
  agent: Agent,
  resolved: { model: string; tools: readonly Tool[] },
): AgentDefinition {
  const content = {
    name: agent.name,
    instructions: agent.instructions,
    model: resolved.model,
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

/** Returns the tool with its catalog entry; each server is a category of its own. */
function inCatalog(tool: ToolDefinition): ToolDefinition {
  const { summary, actions } = catalogEntryOf(tool);
  return { ...tool, catalog: { summary, category: tool.mcp?.server ?? 'other', actions } };
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
