import type { LimitName } from './definition/definition.js';
import type { Json } from './json.js';
import type { BlobRef } from './transcript/messages.js';

/** A limit of the run, or a turn that goes round in circles. */
export type StopReason = LimitName | 'no_progress';

export const FAIL_REASONS = [
  'invalid_output',
  'refused',
  'filtered',
  'truncated',
  'context_too_long',
  'limit',
  'input',
  'error',
] as const;
export type FailReason = (typeof FAIL_REASONS)[number];

/** How a turn ended, and why: the two words that every surface shows. */
export type OutcomeEnd =
  | { readonly status: 'completed'; readonly reason: 'answer' | 'tool' | 'closed' }
  | { readonly status: 'stopped'; readonly reason: StopReason }
  | { readonly status: 'cancelled'; readonly reason: 'cancelled' }
  | { readonly status: 'failed'; readonly reason: FailReason };

/** Tokens and money. `costUsd` is null where a price is unknown, never 0 for want of one. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** A part of `outputTokens`; absent where no provider told of any. */
  readonly reasoningTokens?: number;
  readonly costUsd: number | null;
  /** At least one reply came without usage, so the counts are estimates. */
  readonly estimated?: true;
}

export interface OutcomeBody<Output = Json> {
  /** The best text at hand; null where there is none. */
  readonly answer: string | null;
  /** The whole answer where it is too large for the history; `answer` is then its head and tail. */
  readonly blob?: BlobRef;
  /** Typed by the agent; null where there is none. */
  readonly output: Output | null;
  /** Deciding model calls; a closing call is not counted. */
  readonly steps: number;
  /** Tool calls that were executed. */
  readonly toolCalls: number;
  readonly usage: Usage;
  readonly segments: number;
  /** What went wrong, for people; only on `failed`. */
  readonly error?: string;
  /** Hash of the template that the instructions were made of. */
  readonly template?: string;
  /** `output` is a best effort: this is what it does not keep to. */
  readonly issues?: readonly string[];
  /** The limit behind reason `limit`. */
  readonly limit?: StopReason;
}

/** The typed end of a turn. */
export type Outcome<Output = Json> = OutcomeEnd & OutcomeBody<Output>;
