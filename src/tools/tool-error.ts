import { PerdureError } from '../core/errors.js';

/**
 * Thrown by a tool for an error that the model shall hear at once and that no retry can mend: a
 * missing file, a refused amount, a malformed query. Any other error is retried as the effect allows.
 */
export class ToolError extends PerdureError {
  static readonly code = 'tool';
  override readonly name = 'ToolError';
  override readonly code = ToolError.code;
}
