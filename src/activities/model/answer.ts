import type { z } from 'zod';
import type { AgentDefinition } from '../../core/definition/definition.js';
import type { Json } from '../../core/json.js';
import type { ParsedAnswer } from '../../core/reply.js';
import type { ResponseSchema } from '../../models/model.js';
import { parseAnswer, type AnswerParser } from '../../output/parse-output.js';
import { restorePinnedSchema } from '../../output/pinned-schema.js';
import { toStrictSchema } from '../../output/strict-schema.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import type { PinnedAgent } from '../definitions.js';

/**
 * Maximum bytes of an output. A larger one would fill the history, so the model is asked for a
 * shorter one.
 */
const MAX_OUTPUT_BYTES = 128 * 1024;

/**
 * Returns the schema that a model's answer should fit; undefined if the agent's output has none.
 */
export function answerSchema({
  output,
}: Pick<AgentDefinition, 'output'>): ResponseSchema | undefined {
  if (output?.type !== 'json') return undefined;
  const { name, schema } = output;
  const instruction =
    'When you answer, answer only with JSON that fits this JSON schema:\n' + JSON.stringify(schema);
  const strict = toStrictSchema(schema);
  return { name, schema: strict.ok ? strict.schema : schema, instruction };
}

/**
 * Checks an answer against the run's pinned contract, with this worker's code for it. Returns
 * undefined if the agent accepts any text. Never rejects, because the answer has been paid for.
 */
export async function checkModelAnswer(
  pinned: PinnedAgent,
  text: string,
  context: Json,
): Promise<ParsedAnswer | undefined> {
  let parsed: ParsedAnswer;
  try {
    const parser = createAnswerParser(pinned);
    if (parser === null) return undefined;
    parsed = await parseAnswer(parser, text, { context });
  } catch (error) {
    return { ok: false, problem: `the answer cannot be checked: ${normalizeError(error).message}` };
  }
  if (!parsed.ok) return parsed;
  const bytes = Buffer.byteLength(JSON.stringify(parsed.output));
  if (bytes <= MAX_OUTPUT_BYTES) return parsed;
  return { ok: false, problem: `the answer has ${bytes} bytes, at most ${MAX_OUTPUT_BYTES} fit` };
}

/**
 * Returns the zod schema of the agent's output; null if the output has another contract, or none.
 */
export function contractSchema(pinned: PinnedAgent): z.ZodType | null {
  const parser = pinned.definition.output?.type === 'json' ? createAnswerParser(pinned) : null;
  return parser?.type === 'zod' ? parser.schema : null;
}

/**
 * Creates the parser of an agent's answers; null if an answer is any text, or a class. Throws if
 * the pinned schema cannot be read.
 */
export function createAnswerParser({
  definition,
  agent,
  current,
}: PinnedAgent): AnswerParser | null {
  const { output } = definition;
  if (output === undefined) return null;
  const own = agent?.answer?.parser;
  if (current && own) return own;
  switch (output.type) {
    case 'json':
      return { type: 'zod', schema: restorePinnedSchema(output.schema) };
    case 'tags':
      return { type: 'tags', tags: output.tags };
    case 'classes':
      return null;
    case 'function':
      return own?.type === 'function' ? own : { type: 'function', parse: throwMissing };
  }
}

function throwMissing(): never {
  throw new Error('this worker no longer has the function that reads the answers of this agent');
}
