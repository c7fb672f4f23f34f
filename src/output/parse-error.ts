import { PerdureError } from '../core/errors.js';

/**
 * Thrown by a parser for an answer that the model shall mend: it reads the message as it is, so say
 * what is wrong and what would be right. Any other error counts as a problem too.
 */
export class ParseError extends PerdureError {
  static readonly code = 'parse';
  override readonly name = 'ParseError';
  override readonly code = ParseError.code;
}
