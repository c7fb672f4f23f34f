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

/** Makes a retriever of checked options. */
export function createRetriever(given: RetrieveFunction | RetrieveOptions): Retriever {
  const { find, timeout = TIMEOUT_MS } = typeof given === 'function' ? { find: given } : given;
  return { find, timeoutMs: timeout };
}
