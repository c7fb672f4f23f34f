import { wellFormed } from '../../core/text/whole-text.js';
import { types } from 'node:util';
import { redact } from '../../secrets/redact.js';
import { ToolError } from '../tool-error.js';

/** The same in every copy of the package that a worker may have loaded. */
const ARTIFACT: unique symbol = Symbol.for('perdure.artifact');
const NAME = /^[a-z0-9_-]{1,64}$/;
const MAX_SUMMARY_CHARACTERS = 300;
/** Leaves room for the ending of a default name. */
const TOOL_CHARACTERS = 48;

/** A value returned by `artifact`. */
export interface ArtifactResult<Value = unknown> {
  readonly [ARTIFACT]: true;
  readonly value: Value;
  readonly name?: string;
  readonly summary?: string;
  /** Returns the note that stands for an artifact inside another value. */
  toJSON(): string;
}

/** Options of `artifact`. */
export interface ArtifactOptions {
  /**
   * The name by which the model passes the artifact on: 1 to 64 of a–z, 0–9, `_` and `-`; default:
   * the tool's name with `_result`. Values never change: if another value has the name, a number is
   * appended.
   */
  readonly name?: string;
  /**
   * A line of at most 300 characters for the model: what the value is, in addition to its shape.
   */
  readonly summary?: string;
}

/**
 * Makes a tool's result an artifact: the whole value goes to the blob store, whatever its size, and
 * the model reads its name, its shape, and its start. A later call whose arguments contain the name
 * gets the value with `context.artifacts.get(name)`. The artifact lives as long as the run.
 *
 * The value becomes JSON (dates as text, maps as objects); a string stays a string. Throws a
 * `ToolError` if the name is invalid, which the model may have chosen, or if the value is undefined
 * or a promise.
 *
 * @example
 * ```ts
 * import { defineTool } from 'perdure';
 * import { artifact } from 'perdure/tools';
 * import { z } from 'zod';
 *
 * export const listOrders = defineTool({
 *   name: 'list_orders',
 *   description: 'Loads the orders of a month.',
 *   effect: 'read',
 *   input: z.object({ month: z.string() }),
 *   execute: ({ month }) =>
 *     artifact([{ id: 'A1', month }], { name: `orders_${month}`, summary: 'all orders of the month' }),
 * });
 * ```
 */
export function artifact<Value>(
  value: Value,
  options: ArtifactOptions = {},
): ArtifactResult<Value> {
  const { name, summary } = options;
  if (name !== undefined && (typeof name !== 'string' || !NAME.test(name))) {
    throw new ToolError(
      `artifact: name: expected 1 to 64 of a-z, 0-9, "_" and "-", got ${JSON.stringify(name)?.slice(0, 100)}`,
    );
  }
  if (summary !== undefined && typeof summary !== 'string') {
    throw new ToolError(`artifact: summary: expected a string, got ${typeof summary}`);
  }
  const fault = faultOf(value);
  if (fault !== null) throw new ToolError(`artifact: ${fault}`);
  const line = summary === undefined ? '' : lineOf(summary);
  return {
    [ARTIFACT]: true,
    value,
    ...(name !== undefined && { name }),
    ...(line !== '' && { summary: line }),
    toJSON: () => '[an artifact has to be the whole result of a tool]',
  };
}

/** Redacts before truncating, so not even the start of a secret remains. */
function lineOf(summary: string): string {
  const line = redact(summary).replaceAll(/\s+/g, ' ').trim();
  return wellFormed(line.slice(0, MAX_SUMMARY_CHARACTERS));
}

/** Recognizes artifacts of every copy of the package that a project may have. */
export function isArtifact(value: unknown): value is ArtifactResult {
  return typeof value === 'object' && value !== null && ARTIFACT in value;
}

/** Returns the default name of an artifact of this tool. */
export function defaultArtifactName(tool: string): string {
  return `${tool.toLowerCase().slice(0, TOOL_CHARACTERS)}_result`;
}

function faultOf(value: unknown): string | null {
  if (value === undefined) return 'expected a value, got undefined; return one, or nothing at all';
  if (types.isPromise(value)) return 'the value is a promise; await it first';
  return isArtifact(value) ? 'the value is an artifact already; return that one' : null;
}
