import { z } from 'zod';
import type { Duration } from '../../core/text/duration.js';
import { checkOptions, type OptionSchemas } from '../../validation/check-options.js';
import { durableDuration } from '../../validation/durations.js';
import { defineTool } from '../define-tool.js';
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
