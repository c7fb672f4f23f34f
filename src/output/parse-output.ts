import type { z } from 'zod';
import type { TagSet } from '../core/definition/definition.js';
import type { Json } from '../core/json.js';
import type { ParsedAnswer } from '../core/reply.js';
import { guarded } from '../tools/guard.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import { extractJson } from './extract-json.js';
import { parseTags } from './parse-tags.js';
import { parseWithZod } from './parse-zod.js';
import { toPlainOutput } from './plain-output.js';

/**
 * A user's parser: returns the output, or throws, preferably a `ParseError`, what the model should
 * fix.
 */
export type ParseFunction = (text: string, options: { readonly context: Json }) => unknown;

/** How an agent's answer is parsed. */
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
 * Parses a model's answer into its output, or into the problem that the model should fix.
 *
 * Contract: never rejects, and waits at most `limitMs` for user code, so that no parser can lose
 * the answer.
 */
export async function parseAnswer(
  parser: AnswerParser,
  text: string,
  options: ParseOptions = {},
): Promise<ParsedAnswer> {
  switch (parser.type) {
    case 'zod': {
      const extracted = extractJson(text);
      return extracted.ok ? parseWithZod(parser.schema, extracted.value, options) : extracted;
    }
    case 'tags':
      return parseTags(parser.tags, text);
    case 'function':
      return parseWithFunction(parser.parse, text, options);
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
        return toPlainOutput(await parse(text, { context }));
      } catch (thrown) {
        const { type, message } = normalizeError(thrown);
        // Compared by name: several copies of the package may be loaded.
        if (type === 'ParseError') return { ok: false, problem: ownMessage(thrown) ?? message };
        throw thrown;
      }
    },
    limitMs,
  );
  if (result.ok) return result.value;
  return { ok: false, problem: `The answer could not be read: ${result.message}` };
}

/** Returns the message without its causes, which are for the developer; bounded and redacted. */
function ownMessage(thrown: unknown): string | undefined {
  const message: unknown = thrown instanceof Error ? thrown.message : undefined;
  if (typeof message !== 'string' || message === '') return undefined;
  return normalizeError({ message }).message;
}
