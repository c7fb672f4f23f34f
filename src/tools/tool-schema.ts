import type { z } from 'zod';
import type { JsonObject } from '../core/json.js';
import { orderedKeywords, writtenSchema } from './arguments/written-schema.js';

/**
 * The JSON schema of a tool's arguments, as the model sees it: what it does not name is refused,
 * unless the object is loose.
 *
 * Throws an error that names each path which JSON schema cannot express.
 */
export function argumentsSchema(input: z.ZodObject): JsonObject {
  const schema = writtenSchema(input, 'input');
  const closed = 'additionalProperties' in schema ? {} : { additionalProperties: false };
  return orderedKeywords({ ...schema, ...closed });
}
