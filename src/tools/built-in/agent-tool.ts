import { z } from 'zod';
import type { ParentClose } from '../../core/definition/tool-definition.js';
import { defineTool } from '../define-tool.js';
import { workflowOlder } from '../tool-error.js';
import type { Tool } from '../tool.js';

const message = z
  .string()
  .min(1)
  .describe('the task; the agent sees nothing else of this conversation');

/** An agent as a tool of another one. */
export interface AgentToolOptions {
  /** The agent's own name. */
  readonly agent: string;
  /** The tool's name, for the model; default: the agent's, with `_` for dots. */
  readonly as?: string;
  /** For the model: what the agent does, and when to call it. */
  readonly description: string;
  /** What happens to its run if the caller ends first; default `request_cancel`. */
  readonly parentClose?: ParentClose;
  /** For a graph that reads no message: the type of its `input`. */
  readonly input?: z.ZodObject;
  /** For an agent whose instructions are a template: its arguments. */
  readonly args?: z.ZodObject;
  /** A prompt of the agent that replaces the message; its arguments are `promptArgs`. */
  readonly prompt?: { readonly name: string; readonly args?: z.ZodObject };
}

/**
 * Makes a tool that is an agent: a call is a child run with its own limits, capped at what the
 * caller has left. The workflow starts it; the caller's worker executes nothing.
 */
export function agentTool(options: AgentToolOptions): Tool {
  const { agent, as, description, parentClose, prompt } = options;
  const tool = defineTool({
    name: as ?? (prompt === undefined ? agent : `${agent}_${prompt.name}`).replaceAll('.', '_'),
    description,
    effect: 'keyed',
    input: schemaOf(options),
    describe: ({ message: text, ...rest }) =>
      [`${agent}:`, prompt?.name, text, ...Object.values(rest).map((part) => JSON.stringify(part))]
        .filter((part) => typeof part === 'string')
        .join(' '),
    execute: () => {
      throw workflowOlder(`${agent} is started by the workflow`);
    },
  });
  const calls = {
    agent,
    parentClose: parentClose ?? 'request_cancel',
    ...(prompt && { prompt: prompt.name }),
  } as const;
  return Object.freeze({ ...tool, kind: 'agent' as const, calls });
}

function schemaOf({ input, args, prompt }: AgentToolOptions): z.ZodObject {
  if (prompt !== undefined) {
    return z.object({
      ...(prompt.args && { promptArgs: prompt.args }),
      ...(args && { args }),
    });
  }
  if (input !== undefined) return z.object({ input });
  return args === undefined ? z.object({ message }) : z.object({ message, args });
}
