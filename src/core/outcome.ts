import { LIMIT_NAMES } from './definition/definition.js';
import type { Json } from './json.js';
import type { BlobRef } from './transcript/messages.js';

export const COMPLETE_REASONS = ['answer', 'tool', 'closed'] as const;

export const STOP_REASONS = [...LIMIT_NAMES, 'no_progress', 'denied'] as const;
/**
 * Why a turn was stopped: by a limit, by `no_progress` if it repeated itself or failed step after step, or
 * by `denied` if people denied its calls three times in a row.
 */
export type StopReason = (typeof STOP_REASONS)[number];

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
/**
 * Why a turn failed: its output stayed invalid, the provider refused or filtered the reply, the reply was cut
 * off, the prompt outgrew the model's context, a limit was reached with `onLimit: 'fail'`, the input was
 * invalid, or an error occurred, which `error` of the outcome describes.
 */
export type FailReason = (typeof FAIL_REASONS)[number];

/** How a turn ended, and why. */
export type OutcomeEnd =
  | { readonly status: 'completed'; readonly reason: (typeof COMPLETE_REASONS)[number] }
  | { readonly status: 'stopped'; readonly reason: StopReason }
  | { readonly status: 'cancelled'; readonly reason: 'cancelled' }
  | { readonly status: 'failed'; readonly reason: FailReason };

/** Tokens and money. `costUsd` is null if a price is unknown. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** A part of `inputTokens`: those written to a provider's cache; absent if there are none. */
  readonly cacheWriteTokens?: number;
  /** A part of `outputTokens`; absent if no provider reported any. */
  readonly reasoningTokens?: number;
  readonly costUsd: number | null;
  /** At least one reply came without usage, so the counts are estimated. */
  readonly estimated?: true;
}

/** The fields of an outcome other than status and reason. */
export interface OutcomeBody<Output = Json> {
  /** The answer, or the best text available; null if there is none. */
  readonly answer: string | null;
  /** The whole answer if it is too large for the history; `answer` is then its head and tail. */
  readonly blob?: BlobRef;
  /** The answer as the agent's `output` defines it; null if there is none. */
  readonly output: Output | null;
  /** Number of deciding model calls, without closing calls. */
  readonly steps: number;
  /** Number of executed tool calls. */
  readonly toolCalls: number;
  readonly usage: Usage;
  readonly segments: number;
  /** What went wrong, for people; only on `failed`. */
  readonly error?: string;
  /** Hash of the template from which the instructions were rendered. */
  readonly template?: string;
  /** The problems with `output` if it is a best effort. */
  readonly issues?: readonly string[];
  /**
   * What the storage could not keep of results whose side effects had happened, for people; absent
   * if everything was stored.
   */
  readonly lost?: readonly string[];
  /** The limit for reason `limit`. */
  readonly limit?: StopReason;
}

/** The outcome of a turn or a run. */
export type Outcome<Output = Json> = OutcomeEnd & OutcomeBody<Output>;
