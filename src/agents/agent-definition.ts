import type { AgentDefinition } from '../core/definition.js';
import { sha256Hex } from '../core/digest.js';
import { canonicalJson, type Json } from '../core/json.js';
import { toToolDefinition } from '../tools/tool-definition.js';
import type { Tool } from '../tools/tool.js';
import type { Agent } from './define-agent.js';

/** The agent as data, with its content hash: what a run pins at its start. */
export function toAgentDefinition(
  agent: Agent,
  resolved: { model: string; tools: readonly Tool[] },
): AgentDefinition {
  const content = {
    name: agent.name,
    instructions: agent.instructions,
    model: resolved.model,
    tools: resolved.tools.map((tool) => toToolDefinition(tool)),
    toolChoice: agent.toolChoice,
    toolCalls: agent.toolCalls,
    onLimit: agent.onLimit,
    limits: agent.limits,
    settings: agent.settings,
    ...(agent.compaction !== undefined && { compaction: agent.compaction }),
  };
  // Through JSON, so that what is hashed is what the history will hold.
  const json: Json = JSON.parse(JSON.stringify(content));
  return { ...content, hash: sha256Hex(canonicalJson(json)) };
}
