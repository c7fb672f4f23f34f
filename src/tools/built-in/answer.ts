import { z } from 'zod';
import { isObject } from '../../core/json.js';
import { checkOptions, expected, type OptionSchemas } from '../../validation/check-options.js';
import { defineTool } from '../define-tool.js';
import type { Tool } from '../tool.js';

/** Options of the tool `answer`. */
export interface AnswerOptions {
  /** The type of the answer; default: a string. The keys of an object are the tool's arguments. */
  readonly output?: z.ZodType;
}

const answerOptions = z.strictObject({
  output: expected('a zod type', (value) => isObject(value) && '_zod' in value).optional(),
} satisfies OptionSchemas<AnswerOptions>);

/**
 * Makes a tool that ends the turn with an answer: for agents with `toolChoice: 'required'`, and for
 * models that call tools better than they write. If the agent has an `output`, use the same schema
 * for both: the agent's types the outcome, and the answer must fit both. Throws an `InputError` if
 * an option is invalid.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { answer } from 'perdure/tools';
 * import { z } from 'zod';
 *
 * const city = z.object({ name: z.string(), people: z.int() });
 *
 * export const atlas = defineAgent({
 *   name: 'atlas',
 *   instructions: 'Find the city.',
 *   tools: [answer({ output: city })],
 *   toolChoice: 'required',
 *   output: city,
 * });
 * ```
 */
export function answer(options: AnswerOptions = {}): Tool {
  checkOptions('answer', { schema: answerOptions, options });
  const { output } = options;
  const common = {
    name: 'answer',
    description: 'Gives the answer and ends the work: for a question, a greeting, a result.',
    effect: 'read',
    ends: true,
  } as const;
  if (output instanceof z.ZodObject) {
    return defineTool({ ...common, input: output, execute: (value) => value });
  }
  const input = z.object({ answer: output ?? z.string().describe('the whole answer') });
  return defineTool({ ...common, input, execute: (given) => given.answer });
}
