import { z } from 'zod';
import { waitProblem } from '../../core/calls/wait.js';
import { defineTool } from '../define-tool.js';
import { workflowOlder } from '../tool-error.js';
import type { Tool } from '../tool.js';

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
