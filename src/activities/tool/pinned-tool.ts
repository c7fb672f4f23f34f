import { z } from 'zod';
import type { Effect, ToolDefinition } from '../../core/definition/tool-definition.js';
import { canonicalJson } from '../../core/json.js';
import { argumentsOf } from '../../mcp/call-tool.js';
import { toZodType } from '../../output/foreign-patterns.js';
import type { Tool } from '../../tools/tool.js';

export const START_NEW_RUN = 'start a new run, or deploy the earlier form of the tool';

/** Returns the worker's tool if its parameters match the pinned ones, else undefined. */
export function ifUnchanged(pinned: ToolDefinition, tool: Tool | undefined): Tool | undefined {
  const isSame =
    tool !== undefined && canonicalJson(tool.parameters) === canonicalJson(pinned.parameters);
  return isSame ? tool : undefined;
}

/**
 * Creates a schema from the pinned JSON schema, for a worker whose tool has changed. If that is not
 * possible, the schema accepts every object: the tool's own schema checks the arguments before
 * execution.
 */
export function toPinnedInput(tool: ToolDefinition): z.ZodObject {
  // zod cannot read every schema of an MCP server, so those have a separate check.
  if (tool.mcp !== undefined) return argumentsOf(tool.parameters);
  try {
    const schema = toZodType(tool.parameters);
    return schema instanceof z.ZodObject ? schema : z.looseObject({});
  } catch {
    return z.looseObject({});
  }
}

/** Explains why a call is blocked: the tool's effect differs from the pinned one. */
export function effectChangedMessage({ name, effect }: ToolDefinition, current: Effect): string {
  return `tool "${name}" was "${effect}" when the run began and is "${current}" now; ${START_NEW_RUN}`;
}
