import { PerdureError } from '../core/errors.js';

/**
 * Thrown by a tool for an error that no retry can fix and that the model should read at once: a
 * missing file, a refused amount, a malformed query. Any other error is retried if the tool's
 * effect allows it.
 *
 * @example
 * ```ts
 * import { defineTool, ToolError } from 'perdure';
 * import { z } from 'zod';
 *
 * const orders = new Map([['A1', 'sent']]);
 *
 * export const lookUpOrder = defineTool({
 *   name: 'look_up_order',
 *   description: 'Returns the state of an order.',
 *   effect: 'read',
 *   input: z.object({ order: z.string() }),
 *   execute: ({ order }) => {
 *     const state = orders.get(order);
 *     if (state === undefined) throw new ToolError(`order ${order}: not found; ask for the number`);
 *     return state;
 *   },
 * });
 * ```
 */
export class ToolError extends PerdureError {
  static readonly code = 'tool';
  override readonly name = 'ToolError';
  override readonly code = ToolError.code;
}

/**
 * Returns the error of a tool that the workflow handles itself. A worker executes it only if its workflow
 * code is from an earlier version.
 */
export function workflowOlder(why: string): ToolError {
  return new ToolError(`${why}; upgrade the workflow code: it is older than this tool`);
}
