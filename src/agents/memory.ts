import type { Outcome } from '../core/outcome.js';
import { toMs, type Duration } from '../core/text/duration.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import type { RetrieveContext, RetrieveFunction } from './retriever.js';

/** A turn that has ended, for a memory. */
export interface EndedTurn {
  /** Its number in the run, from 1. */
  readonly turn: number;
  /**
   * What was said in the turn, oldest first: the messages of people, those of the model, and results of
   * tools. Messages of a very long turn that a summary has replaced are missing. Empty if nothing was said, as
   * in a graph that begins with data.
   */
  readonly messages: readonly PromptMessage[];
  readonly outcome: Outcome;
}

/** What `remember` receives beside the turn. */
export interface RememberContext extends RetrieveContext {
  /**
   * 64 hex digits: the same in each attempt for this turn, also after a reset, and different for every other
   * turn. Store what you remember under it, in place of what the store has there: the newest call is right.
   */
  readonly idempotencyKey: string;
}

/** Remembers a turn. It may be called more than once for a turn, with the same `idempotencyKey`. */
export type RememberFunction = (ended: EndedTurn, context: RememberContext) => unknown;

/** A `remember` function with options. */
export interface RememberOptions {
  readonly save: RememberFunction;
  /** How long one attempt may take. A duration: ms, or words such as '30 seconds', which is the default. */
  readonly timeout?: Duration;
}

/**
 * A memory that lasts longer than a conversation: `remember` saves each turn that has ended, and `retrieve`
 * finds what helps with the next one. Both are options of `defineAgent`.
 *
 * @example
 * ```ts
 * import { defineAgent, type Memory } from 'perdure';
 *
 * const turns = new Map<string, string>();
 * const memory: Memory = {
 *   retrieve: ({ query }) => [...turns.values()].filter((text) => text.includes(query)),
 *   remember: ({ messages, outcome }, { idempotencyKey }) => {
 *     turns.set(idempotencyKey, `${messages[0]?.text} ${outcome.answer}`);
 *   },
 * };
 * defineAgent({ name: 'companion', instructions: 'Talk.', ...memory });
 * ```
 */
export interface Memory {
  readonly retrieve: RetrieveFunction;
  readonly remember: RememberFunction;
}

/** A `remember` function with defaults filled in. */
export interface Rememberer {
  readonly save: RememberFunction;
  readonly timeoutMs: number;
}

const TIMEOUT_MS = 30_000;

/** Fills in the defaults of checked options. */
export function createRememberer(given: RememberFunction | RememberOptions): Rememberer {
  const { save, timeout = TIMEOUT_MS } = typeof given === 'function' ? { save: given } : given;
  return { save, timeoutMs: toMs(timeout) };
}
