import { PerdureError } from '../core/errors.js';

/**
 * Thrown by an output function for an answer that the model should fix. The model reads the message
 * verbatim, so it should name the fault and the correct form. Any other error also rejects the
 * answer.
 *
 * @example
 * ```ts
 * import { defineAgent, ParseError } from 'perdure';
 *
 * export const counter = defineAgent({
 *   name: 'counter',
 *   instructions: 'Answer with a number.',
 *   output: (text) => {
 *     const count = Number(text);
 *     if (Number.isInteger(count)) return count;
 *     throw new ParseError(`expected a whole number, got ${text.slice(0, 40)}`);
 *   },
 * });
 * ```
 */
export class ParseError extends PerdureError {
  static readonly code = 'parse';
  override readonly name = 'ParseError';
  override readonly code = ParseError.code;
}
