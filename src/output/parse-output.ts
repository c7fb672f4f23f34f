import type { z } from 'zod';
import type { TagSet } from '../core/definition/definition.js';
import type { Json } from '../core/json.js';
import type { ParsedAnswer } from '../core/reply.js';
import { guarded } from '../tools/guard.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import { extractJson } from './extract-json.js';
import { parseTags } from './parse-tags.js';
import { parseWithZod } from './parse-zod.js';
import { plainOutput } from './plain-output.js';

/** A user's parser: returns the output, or throws (best a `ParseError`) what the model shall mend. */
export type ParseFunction = (text: string, options: { readonly context: Json }) => unknown;

/** How an agent's answer becomes its output. */
export type AnswerParser =
  | { readonly type: 'zod'; readonly schema: z.ZodType }
  | { readonly type: 'tags'; readonly tags: TagSet }
  | { readonly type: 'function'; readonly parse: ParseFunction };

export interface ParseOptions {
  /** The run's `context`, for the user's parser. */
  readonly context?: Json;
  /** Milliseconds that user code may take; 5,000 by default. */
  readonly limitMs?: number;
}

/**
 * Makes the output of a model's answer, or the problem that the model is to mend.
 *
 * Contract: never rejects and never takes user code for longer than `limitMs` of waiting, so that no
 * parser can cost the answer that it was to read.
 */
export async function parseAnswer(
  how: AnswerParser,
  text: string,
  options: ParseOptions = {},
): Promise<ParsedAnswer> {
  switch (how.type) {
    case 'zod': {
      const extracted = extractJson(text);
      return extracted.ok ? parseWithZod(how.schema, extracted.value, options) : extracted;
    }
    case 'tags':
      return parseTags(how.tags, text);
    case 'function':
      return parseWithFunction(how.parse, text, options);
  }
}

async function parseWithFunction(
  parse: ParseFunction,
  text: string,
  { context = null, limitMs }: ParseOptions,
): Promise<ParsedAnswer> {
  const result = await guarded(
    'the output function of the agent',
    async (): Promise<ParsedAnswer> => {
      try {
        return plainOutput(await parse(text, { context }));
      } catch (thrown) {
        const { type, message } = normalizeError(thrown);
        // By name: several copies of the package may be loaded.
        if (type === 'ParseError') return { ok: false, problem: ownMessage(thrown) ?? message };
        throw thrown;
      }
    },
    limitMs,
  );
  if (result.ok) return result.value;
  return { ok: false, problem: `The answer could not be read: ${result.message}` };
}

/** Without the causes, which are for the developer; bounded and redacted like any message. */
function ownMessage(thrown: unknown): string | undefined {
  const message: unknown = thrown instanceof Error ? thrown.message : undefined;
  if (typeof message !== 'string' || message === '') return undefined;
  return normalizeError({ message }).message;
}
