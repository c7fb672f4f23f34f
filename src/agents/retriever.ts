import type { Json, JsonObject } from '../core/json.js';
import type { PromptMessage } from '../core/transcript/messages.js';

/** What a turn is about. */
export interface RetrieveQuery {
  /** What was said to begin the turn. */
  readonly query: string;
  /** The conversation so far, those words included. */
  readonly messages: readonly PromptMessage[];
  /** Documents that are taken at most; further ones are left out. */
  readonly limit: number;
}

export interface RetrieveContext {
  /** The run's `context`. */
  readonly context: Json;
  /** Aborts when the time is up or the turn is cancelled. */
  readonly signal: AbortSignal;
  readonly run: { readonly id: string; readonly runId: string; readonly turn: number };
  readonly log: (message: string, fields?: JsonObject) => void;
}

/** A text, or one with the id by which it is known again and where it is from. */
export type FoundDocument =
  | string
  | {
      readonly text: string;
      readonly id?: string | undefined;
      readonly source?: string | undefined;
    };

/**
 * Finds documents for a turn, best first. It runs on the worker, once per turn, before the first model
 * call. What it throws is tried again, and ends the turn as `failed` in the end.
 */
export type RetrieveFunction = (
  query: RetrieveQuery,
  context: RetrieveContext,
) => readonly FoundDocument[] | Promise<readonly FoundDocument[]>;

export interface RetrieveOptions {
  readonly find: RetrieveFunction;
  /** Milliseconds that one attempt may take; default 30,000. */
  readonly timeout?: number;
}

export interface Retriever {
  readonly find: RetrieveFunction;
  readonly timeoutMs: number;
}

const TIMEOUT_MS = 30_000;
/** A turn does not wait longer for what it is to begin with. */
const LONGEST_MS = 60 * 60_000;

/** Throws with the value at fault and the cure. */
export function retrieverOf(
  agent: string,
  given: RetrieveFunction | RetrieveOptions | undefined,
): Retriever | null {
  if (given === undefined) return null;
  const {
    find,
    timeout = TIMEOUT_MS,
    ...rest
  }: Partial<RetrieveOptions> = typeof given === 'function' ? { find: given } : { ...given };
  const [unknown] = Object.keys(rest);
  if (typeof find !== 'function' || unknown !== undefined) {
    const what = unknown === undefined ? '' : ` has no option "${unknown}"`;
    throw new Error(
      `agent "${agent}": retrieve${what}: give a function, or { find: function, timeout: milliseconds }`,
    );
  }
  if (Number.isInteger(timeout) && timeout > 0 && timeout <= LONGEST_MS) {
    return { find, timeoutMs: timeout };
  }
  throw new Error(
    `agent "${agent}": retrieve.timeout ${JSON.stringify(timeout)}: give milliseconds, 1 to ${LONGEST_MS}`,
  );
}
