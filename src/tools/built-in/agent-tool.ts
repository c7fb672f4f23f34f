import { z } from 'zod';
import type { ParentClose } from '../../core/definition/definition.js';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool } from '../tool.js';

/** An agent as another one calls it. */
export interface AgentToolOptions {
  /** The agent's own name. */
  readonly agent: string;
  /** The tool's name, for the model; default: the agent's, with `_` for dots. */
  readonly as?: string;
  /** For the model: what the agent does and when to call it. */
  readonly description: string;
  /** What becomes of it when its caller ends first; default `request_cancel`. */
  readonly parentClose?: ParentClose;
}

/**
 * A tool that is an agent: a call is a child run with limits of its own, taken from what the caller
 * has left. Nothing of it is executed on the worker of the caller.
 */
export function agentTool({ agent, as, description, parentClose }: AgentToolOptions): Tool {
  const tool = defineTool({
    name: as ?? agent.replaceAll('.', '_'),
    description,
    effect: 'keyed',
    input: z.object({
      message: z
        .string()
        .min(1)
        .describe('what it shall do; it sees nothing else of this conversation'),
    }),
    describe: ({ message }) => `${agent}: ${message}`,
    execute: () => {
      throw new ToolError(
        `${agent} is started by the workflow; the workflow code here is older than the tool: ` +
          'deploy both from one version of perdure',
      );
    },
  });
  const calls = { agent, parentClose: parentClose ?? 'request_cancel' } as const;
  return Object.freeze({ ...tool, kind: 'agent' as const, calls });
}
