import { z } from 'zod';
import type { ToolDefinition } from '../core/definition.js';

/** A schema made of the pinned JSON schema, for a worker that has moved on. */
export function pinnedInput(tool: ToolDefinition): z.ZodObject {
  const schema = z.fromJSONSchema(tool.parameters);
  // Arguments are always an object; where the schema says so in an odd way, the tool itself judges.
  return schema instanceof z.ZodObject ? schema : z.looseObject({});
}
