import { z } from 'zod';
import type { ToolDefinition } from '../../core/definition/definition.js';
import { canonicalJson } from '../../core/json.js';
import { argumentsOf } from '../../mcp/call-tool.js';
import { typeOfPinned } from '../../output/foreign-patterns.js';
import type { Tool } from '../../tools/tool.js';

/** The worker's tool where its arguments are still those that the run has pinned. */
export function unchanged(pinned: ToolDefinition, tool: Tool | undefined): Tool | undefined {
  const same =
    tool !== undefined && canonicalJson(tool.parameters) === canonicalJson(pinned.parameters);
  return same ? tool : undefined;
}

/**
 * A schema made of the pinned JSON schema, for a worker that has moved on. Where it cannot be made,
 * everything passes: the tool itself judges before it is executed.
 */
export function pinnedInput(tool: ToolDefinition): z.ZodObject {
  // An MCP server's schema is none that zod wrote: it is checked as what it is.
  if (tool.mcp !== undefined) return argumentsOf(tool.parameters);
  try {
    const schema = typeOfPinned(tool.parameters);
    return schema instanceof z.ZodObject ? schema : z.looseObject({});
  } catch {
    return z.looseObject({});
  }
}
