import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import { workflowOlder } from '../tool-error.js';
import type { Tool } from '../tool.js';

/**
 * Makes a tool that lists a run's artifacts: name, shape, size, and the call that made each one.
 * The workflow answers it from its state; it executes nothing and does not count as a tool call.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { listArtifacts, returnArtifact } from 'perdure/tools';
 *
 * export const analyst = defineAgent({
 *   name: 'analyst',
 *   instructions: 'Return the report that was made.',
 *   tools: [listArtifacts(), returnArtifact()],
 * });
 * ```
 */
export function listArtifacts(): Tool {
  const tool = defineTool({
    name: 'list_artifacts',
    description: 'Lists the artifacts that tools have stored, by the names to pass on.',
    effect: 'read',
    repeat: 'allow',
    input: z.object({}),
    execute: () => {
      throw workflowOlder('artifacts are listed by the workflow, not on a worker');
    },
  });
  return Object.freeze({ ...tool, kind: 'artifacts' as const });
}
