import type { Json, JsonObject } from '../core/json.js';
import { toMs, type Duration } from '../core/text/duration.js';
import type { PromptMessage } from '../core/transcript/messages.js';

/** What a retriever searches for. */
export interface RetrieveQuery {
  /** The message that started the turn. */
  readonly query: string;
  /** The conversation so far, with that message. */
  readonly messages: readonly PromptMessage[];
  /** The maximum number of documents that are used; the rest are dropped. */
  readonly limit: number;
}

/** What a retriever receives in addition to the query. */
export interface RetrieveContext {
  /** The run's `context`. */
  readonly context: Json;
  /** Aborts when the time is up or the turn is canceled. */
  readonly signal: AbortSignal;
  readonly run: { readonly id: string; readonly runId: string; readonly turn: number };
  readonly log: (message: string, fields?: JsonObject) => void;
}

/** A text, optionally with an id that identifies it in later turns and its source. */
export type FoundDocument =
  | string
  | {
      readonly text: string;
      readonly id?: string | undefined;
      readonly source?: string | undefined;
    };

/**
 * Finds documents for a turn, best first. The worker runs it once per turn, before the first model
 * call. If it throws, it is retried; the turn ends as `failed` after the last attempt.
 */
export type RetrieveFunction = (
  query: RetrieveQuery,
  context: RetrieveContext,
) => readonly FoundDocument[] | Promise<readonly FoundDocument[]>;

/** A retriever with options. */
export interface RetrieveOptions {
  readonly find: RetrieveFunction;
  /** The time limit of one attempt, as a `Duration`; default '30 seconds'. */
  readonly timeout?: Duration;
}

/** A retriever made by `createRetriever`, with defaults filled in. */
export interface Retriever {
  readonly find: RetrieveFunction;
  readonly timeoutMs: number;
}

const TIMEOUT_MS = 30_000;

/** Makes a retriever from checked options. */
export function createRetriever(given: RetrieveFunction | RetrieveOptions): Retriever {
  const { find, timeout = TIMEOUT_MS } = typeof given === 'function' ? { find: given } : given;
  return { find, timeoutMs: toMs(timeout) };
}
