import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import type { Tool } from '../tool.js';

/**
 * Makes a tool that ends the turn with an artifact: its value is the outcome's `output`, or, above
 * 64 KiB, the answer's head and tail with a reference to the whole value. For an unknown name the
 * call fails with a list of the artifacts, and the turn continues.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { returnArtifact } from 'perdure/tools';
 *
 * export const analyst = defineAgent({
 *   name: 'analyst',
 *   instructions: 'Make the report, then return it by its name.',
 *   tools: [returnArtifact()],
 * });
 * ```
 */
export function returnArtifact(): Tool {
  return defineTool({
    name: 'return_artifact',
    description:
      'Returns an artifact as the result and ends the work: for a requested table, file, or object, ' +
      'instead of writing it out.',
    effect: 'read',
    ends: true,
    input: z.object({ name: z.string().describe('the name of the artifact, exactly') }),
    describe: ({ name }) => `return artifact ${name}`,
    execute: async ({ name }, { artifacts }) => await artifacts.get(name),
  });
}
