import type { z } from 'zod';
import type { AgentDefinition } from '../../core/definition/definition.js';
import type { Json } from '../../core/json.js';
import type { ParsedAnswer } from '../../core/reply.js';
import type { ResponseSchema } from '../../models/model.js';
import { parseAnswer, type AnswerParser } from '../../output/parse-output.js';
import { pinnedSchema } from '../../output/pinned-schema.js';
import { strictSchema } from '../../output/strict-schema.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import type { PinnedAgent } from '../definitions.js';

/** An output above this size would fill the history; the model is asked for a shorter one. */
const MAX_OUTPUT_BYTES = 128 * 1024;

/** The form that a model is asked for, where the agent's answers have a schema. */
export function answerSchema({ output }: AgentDefinition): ResponseSchema | undefined {
  if (output?.type !== 'json') return undefined;
  const { name, schema } = output;
  const instruction =
    'When you answer, answer with JSON only, nothing beside it, under this JSON schema:\n' +
    JSON.stringify(schema);
  const strict = strictSchema(schema);
  return { name, schema: strict.ok ? strict.schema : schema, instruction };
}

/**
 * Judges an answer by the contract that the run has pinned, with the code that this worker has for
 * it. Undefined where the agent takes any text. Never rejects: the answer has been paid for.
 */
export async function judgeAnswer(
  pinned: PinnedAgent,
  text: string,
  context: Json,
): Promise<ParsedAnswer | undefined> {
  let parsed: ParsedAnswer;
  try {
    const parser = parserOf(pinned);
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

/** The schema that every output of the agent has to fit; null where its contract is another one, or none. */
export function contractSchema(pinned: PinnedAgent): z.ZodType | null {
  const parser = pinned.definition.output?.type === 'json' ? parserOf(pinned) : null;
  return parser?.type === 'zod' ? parser.schema : null;
}

/** How an answer is read; null where it is any text, or a class. Throws for a schema that cannot be read. */
export function parserOf({ definition, agent, current }: PinnedAgent): AnswerParser | null {
  const { output } = definition;
  if (output === undefined) return null;
  const own = agent?.answer?.parser;
  if (current && own) return own;
  switch (output.type) {
    case 'json':
      return { type: 'zod', schema: pinnedSchema(output.schema) };
    case 'tags':
      return { type: 'tags', tags: output.tags };
    case 'classes':
      return null;
    case 'function':
      return own?.type === 'function' ? own : { type: 'function', parse: missing };
  }
}

function missing(): never {
  throw new Error('this worker no longer has the function that reads the answers of this agent');
}
