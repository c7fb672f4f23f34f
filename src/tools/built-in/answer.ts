import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import type { Tool } from '../tool.js';

export interface AnswerOptions {
  /** What the answer is; default: a text. With an object its keys are the tool's arguments. */
  readonly output?: z.ZodType;
}

/**
 * A tool that ends the turn with an answer: for agents with `toolChoice: 'required'`, and for models
 * that call better than they write. For `output` of an agent give the same schema here and there: the
 * agent's gives the outcome its type, and what ends a turn has to fit both.
 */
export function answer({ output }: AnswerOptions = {}): Tool {
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
