import { z } from 'zod';
import { waitProblem } from '../../core/calls/batch.js';
import type { ParentClose } from '../../core/definition/tool-definition.js';
import type { Duration } from '../../core/text/text.js';
import {
  type OptionSchemas,
  checkOptions,
  durableDuration,
} from '../../validation/check-options.js';
import { defineTool } from '../define-tool.js';
import { workflowOlder } from '../errors.js';
import type { Tool } from '../tool.js';

const MAX_QUESTION_CHARACTERS = 2_000;
const MAX_OPTIONS = 20;
const MAX_OPTION_CHARACTERS = 200;

/** Options of `askPerson`. */
export interface AskPersonOptions {
  /**
   * The time after which a question expires, as a `Duration`; the model then reads that there was no
   * answer. Default: never.
   */
  readonly expires?: Duration;
}

const askPersonOptions = z.strictObject({
  expires: durableDuration.optional(),
} satisfies OptionSchemas<AskPersonOptions>);

/**
 * Makes a tool that lets an agent ask a person. The run waits for the answer indefinitely, or until
 * the question expires. It occupies no worker in the meantime. Throws an `InputError` if an option
 * is invalid.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { askPerson, fileTools } from 'perdure/tools';
 *
 * export const editor = defineAgent({
 *   name: 'editor',
 *   instructions: 'Edit the text. If its meaning is unclear, ask; never guess.',
 *   tools: [...fileTools({ root: '.' }), askPerson({ expires: '1 day' })],
 * });
 * ```
 */
export function askPerson(options: AskPersonOptions = {}): Tool {
  checkOptions('askPerson', { schema: askPersonOptions, options });
  const tool = defineTool({
    name: 'ask_person',
    description:
      'Asks a person and waits for the answer. For what only a person can know or decide; ask one ' +
      'clear question.',
    effect: 'read',
    repeat: 'allow',
    input: z.object({
      question: z.string().min(1).max(MAX_QUESTION_CHARACTERS),
      options: z
        .array(z.string().min(1).max(MAX_OPTION_CHARACTERS))
        .max(MAX_OPTIONS)
        .optional()
        .describe('answers to choose from; the person may also answer in other words'),
    }),
    ...options,
  });
  return Object.freeze({ ...tool, kind: 'question' as const });
}

const MAX_REASON_CHARACTERS = 500;

/**
 * Makes a tool that lets an agent wait, for a duration or until a point in time. The run's workflow
 * waits with a durable timer: it occupies no worker and survives crashes and deploys.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { fileTools, wait } from 'perdure/tools';
 *
 * export const watcher = defineAgent({
 *   name: 'watcher',
 *   instructions: 'Read status.txt every hour until it says done.',
 *   tools: [...fileTools({ root: '.' }), wait()],
 * });
 * ```
 */
export function wait(): Tool {
  const tool = defineTool({
    name: 'wait',
    description:
      'Waits, then continues. Give either `seconds` or `until`, at most 366 days ahead. ' +
      'Ends early when a message arrives.',
    effect: 'read',
    repeat: 'allow',
    input: z
      .object({
        seconds: z.number().optional().describe('how long to wait; at most 31622400'),
        until: z
          .string()
          .optional()
          .describe(
            'the moment to wait for, ISO 8601 with offset, such as 2027-03-28T09:00:00+02:00',
          ),
        reason: z
          .string()
          .max(MAX_REASON_CHARACTERS)
          .optional()
          .describe('for people: the reason for waiting'),
      })
      .superRefine((value, context) => {
        const problem = waitProblem(value);
        if (problem !== null) context.addIssue({ code: 'custom', message: problem });
      }),
    describe: ({ seconds, until = '', reason }) => {
      const length = seconds === undefined ? `until ${until}` : `${seconds} s`;
      return reason === undefined ? `wait ${length}` : `wait ${length}: ${reason}`;
    },
    execute: () => {
      throw workflowOlder('the workflow waits, not the worker');
    },
  });
  return Object.freeze({ ...tool, kind: 'wait' as const });
}

const message = z
  .string()
  .min(1)
  .describe('the task; the agent sees nothing else of this conversation');

/** An agent as a tool of another one. */
interface AgentToolOptions {
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
