import type { z } from 'zod';
import { InputError } from '../core/errors.js';
import type { OutputDefinition, TagSet } from '../core/definition/definition.js';
import type { Typed } from '../core/definition/output-type.js';
import { isObject } from '../core/json.js';
import { show } from '../core/text/format-value.js';
import { outputSchema } from '../output/output-schema.js';
import type { Classes } from '../output/classes/classify.js';
import type { AnswerParser, ParseFunction } from '../output/parse-output.js';

/**
 * The required form of an answer: a zod type, `tags({…})`, `classify([…])`, or a function that
 * parses the answer or throws.
 */
export type AgentOutput<Output> =
  | z.ZodType<Output>
  | (TagSet & Typed<Output>)
  | (Pick<Classes, 'classes' | 'samples'> & Typed<Output>)
  | ((...given: Parameters<ParseFunction>) => Output | Promise<Output>);

/** The contract of an agent's answers: as data to pin, and as the code that validates. */
export interface AnswerContract {
  readonly definition: OutputDefinition;
  /** Null if the engine validates without user code, as for classes. */
  readonly parser: AnswerParser | null;
}

/**
 * Returns the contract of an agent's `output`. Throws an `InputError` if `output` is not of an
 * accepted type.
 */
export function answerContract(agent: string, output: AgentOutput<unknown>): AnswerContract {
  if (typeof output === 'function') {
    return { definition: { type: 'function' }, parser: { type: 'function', parse: output } };
  }
  const given: unknown = output;
  if (!isObject(given)) throw notAnOutput(agent, given);
  if (isZod(output)) {
    const { schema } = outputSchema(output);
    const definition = { type: 'json', name: 'answer', schema } as const;
    return { definition, parser: { type: 'zod', schema: output } };
  }
  if (isTags(output)) {
    const { xml, fences, signals } = output;
    const tags = { xml, fences, signals };
    return { definition: { type: 'tags', tags }, parser: { type: 'tags', tags } };
  }
  if ('classes' in output && Array.isArray(output.classes)) {
    return { definition: { type: 'classes', ...output }, parser: null };
  }
  throw notAnOutput(agent, output);
}

function notAnOutput(agent: string, given: unknown): Error {
  return new InputError(
    `agent "${agent}": output: expected a zod type, tags({…}), classify([…]), or a function, got ${show(given)}; ` +
      'for any JSON, use z.json()',
  );
}

function isZod(output: object): output is z.ZodType {
  return '_zod' in output;
}

function isTags(output: object): output is TagSet {
  return 'xml' in output && 'fences' in output && 'signals' in output;
}
