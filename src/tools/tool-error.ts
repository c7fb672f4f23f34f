import { PerdureError } from '../core/errors.js';

/**
 * Thrown by a tool for an error that no retry can fix and that the model reads at once: a missing file,
 * a refused amount, a malformed query. Any other error is retried if the tool's effect allows it.
 *
 * @example
 * ```ts
 * if (order === undefined) throw new ToolError(`order ${id}: not found; list the orders first`);
 * ```
 */
export class ToolError extends PerdureError {
  static readonly code = 'tool';
  override readonly name = 'ToolError';
  override readonly code = ToolError.code;
}
