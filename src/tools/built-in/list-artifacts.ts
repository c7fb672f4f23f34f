import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool } from '../tool.js';

/**
 * A tool that tells an agent which artifacts there are: name, shape, size, and the call that made each.
 * The workflow answers it from its state; nothing is executed, and it counts as no tool call.
 */
export function listArtifacts(): Tool {
  const tool = defineTool({
    name: 'list_artifacts',
    description: 'Lists the artifacts: what tools have kept, by the name to hand on.',
    effect: 'read',
    repeat: 'allow',
    input: z.object({}),
    execute: () => {
      throw new ToolError(
        'artifacts are listed by the workflow, not on a worker; the workflow code here is older ' +
          'than the tool: deploy both from one version of perdure',
      );
    },
  });
  return Object.freeze({ ...tool, kind: 'artifacts' as const });
}
