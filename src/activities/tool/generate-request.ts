import { z } from 'zod';
import { answerContract } from '../../agents/agent-parts.js';
import { type ModelRequest } from '../../models/model.js';
import { NO_REQUEST } from '../../models/uncallable.js';
import { expected } from '../../validation/check-options.js';
import { answerSchema } from '../model/answer-formats.js';

const text = z.string().min(1);
const optionsShape = z.strictObject({
  model: text.optional(),
  message: text,
  instructions: z.string().optional(),
  settings: z.record(z.string(), z.json()).optional(),
  output: expected<z.ZodType>(
    'a zod type, such as z.object({…})',
    (value) => value instanceof z.ZodType,
  ).optional(),
});

/** The checked options of `generate`. */
type Checked = z.output<typeof optionsShape>;

/** Returns the options of `generate`. Throws an `Error` for one that does not fit. */
export function checked(given: unknown): Checked {
  const parsed = optionsShape.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue?.path.join('.') ?? '';
  throw new Error(`context.generate: ${at === '' ? '' : `${at}: `}${issue?.message ?? ''}`);
}

/** Returns the first request of a call of `generate`. */
export function requestOf(
  model: string,
  { message, instructions = '', settings = {}, output }: Checked,
): ModelRequest {
  const form = output && answerContract('generate', output).definition;
  const responseFormat = form && answerSchema({ output: form });
  return {
    ...NO_REQUEST,
    model,
    instructions,
    messages: [{ role: 'user', text: message }],
    settings,
    ...(responseFormat && { responseFormat }),
  };
}

/** Returns the request that sends a reply back which does not fit the schema. */
export function repairRequest(
  first: ModelRequest,
  { reply, repair }: { readonly reply: string; readonly repair: string },
): ModelRequest {
  return {
    ...first,
    messages: [
      ...first.messages,
      { role: 'assistant', text: reply },
      { role: 'user', text: repair },
    ],
  };
}
