import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import type { Tool } from '../tool.js';

/**
 * A tool that ends the turn with an artifact: its value is the outcome's `output`, or, where it is
 * larger than 64 KiB, the answer's head and tail with a reference to the whole. A name that there is
 * not is an error which lists the others, and the turn goes on.
 */
export function returnArtifact(): Tool {
  return defineTool({
    name: 'return_artifact',
    description:
      'Hands an artifact over as the result and ends the work: for a table, a file or an object ' +
      'that was asked for, instead of writing it out.',
    effect: 'read',
    ends: true,
    input: z.object({ name: z.string().describe('the name of the artifact, exactly') }),
    describe: ({ name }) => `return artifact ${name}`,
    execute: async ({ name }, { artifacts }) => await artifacts.get(name),
  });
}
