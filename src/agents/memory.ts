import type { Outcome } from '../core/outcome.js';
import { toMs, type Duration } from '../core/text/duration.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import type { RetrieveContext, RetrieveFunction } from './retriever.js';

/** A turn that has ended, for a memory. */
export interface EndedTurn {
  /** Its number in the run, from 1. */
  readonly turn: number;
  /**
   * The messages of the turn, oldest first: from people and the model, and tool results. Messages
   * of a very long turn that a summary has replaced are missing. Empty if the turn has no messages,
   * as in a graph that starts with data.
   */
  readonly messages: readonly PromptMessage[];
  readonly outcome: Outcome;
}

/** What `remember` receives in addition to the turn. */
export interface RememberContext extends RetrieveContext {
  /**
   * 64 hex digits: the same in each attempt for this turn, even after a reset, and different for
   * every other turn. Store the memory under this key and overwrite any earlier value: the newest
   * call is correct.
   */
  readonly idempotencyKey: string;
}

/** Remembers a turn. It may be called more than once for a turn, with the same `idempotencyKey`. */
export type RememberFunction = (ended: EndedTurn, context: RememberContext) => unknown;

/** A `remember` function with options. */
export interface RememberOptions {
  readonly save: RememberFunction;
  /** The time limit of one attempt, as a `Duration`; default '30 seconds'. */
  readonly timeout?: Duration;
}

/**
 * A memory that lasts longer than a conversation: `remember` saves each turn that has ended, and
 * `retrieve` finds what helps with the next one. Both are options of `defineAgent`.
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
