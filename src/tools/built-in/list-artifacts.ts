import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool } from '../tool.js';

/**
 * A tool that tells an agent which artefacts there are: name, shape, size, and the call that made each.
 * The workflow answers it from its state; nothing is executed, and it counts as no tool call.
 */
export function listArtefacts(): Tool {
  const tool = defineTool({
    name: 'list_artefacts',
    description: 'Lists the artefacts: what tools have kept, by the name to hand on.',
    effect: 'read',
    repeat: 'allow',
    input: z.object({}),
    execute: () => {
      throw new ToolError(
        'artefacts are listed by the workflow, not on a worker; the workflow code here is older ' +
          'than the tool: deploy both from one version of perdure',
      );
    },
  });
  return Object.freeze({ ...tool, kind: 'artefacts' as const });
}
