import { ApplicationFailure } from '@temporalio/common';
import type { ModelBlock } from '../core/blocked.js';
import type { ActivityProblem } from '../core/failure.js';
import type { Json } from '../core/json.js';
import type { FailReason } from '../core/outcome.js';
import type { AttemptReport } from '../core/report.js';
import { isModelError, ModelError } from '../models/model-error.js';
import { LONGEST_WAIT_MS } from '../models/openai/retry-after.js';
import { sample } from '../models/sample.js';
import { redact, redactMessage } from '../secrets/redact.js';
import { wellFormed } from '../tools/utf8.js';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** A provider that stays unusable for so long, over so many attempts, is shown as the run's state. */
const PATIENCE_MS = 120_000;
const PATIENCE_ATTEMPTS = 3;
const EMPTY_ATTEMPTS = 3;
const FIRST_PROBE_MS = 30_000;
const LONGEST_PROBE_MS = 600_000;

/** What becomes of a failed attempt. */
export type FailureDecision =
  | { readonly type: 'retry'; readonly delayMs: number }
  | {
      readonly type: 'blocked';
      readonly reason: ModelBlock;
      /** Milliseconds before the provider wants to be asked again, where it said so. */
      readonly probeAfterMs?: number;
    }
  | { readonly type: 'failed'; readonly reason: Extract<FailReason, 'context_too_long' | 'error'> };

/** Where in its activity an attempt stands. */
export interface FailedAttempt {
  /** Counted from 1. */
  readonly attempt: number;
  /** Milliseconds since the activity was scheduled for the first time. */
  readonly elapsedMs: number;
  /** Why the run is blocked already, when this attempt is a probe. */
  readonly blocked?: ModelBlock;
  /** Empty replies so far, this one included; where nobody counted, all attempts are taken for such. */
  readonly emptyReplies?: number;
  /** A number from 0 up to 1, the jitter. */
  readonly random: () => number;
}

/** Doubled at each attempt, then between half and the whole of it: many runs shall not return as one. */
function backoffMs(attempt: FailedAttempt, first: number, longest: number): number {
  const whole = Math.min(first * 2 ** (attempt.attempt - 1), longest);
  return Math.round(whole * (0.5 + attempt.random() / 2));
}

function askedWaitMs(error: ModelError): number {
  return Math.min(error.details.retryAfterMs ?? 0, LONGEST_WAIT_MS);
}

function retried(attempt: FailedAttempt, retryAfterMs: number): FailureDecision {
  const delayMs = backoffMs(attempt, FIRST_DELAY_MS, LONGEST_DELAY_MS);
  return { type: 'retry', delayMs: Math.max(delayMs, retryAfterMs) };
}

function undisturbed(error: ModelError, attempt: FailedAttempt): FailureDecision {
  const { kind } = error.details;
  const retryAfterMs = askedWaitMs(error);
  const probe = retryAfterMs > 0 ? { probeAfterMs: retryAfterMs } : {};
  switch (kind) {
    case 'quota':
    case 'credentials':
    case 'model':
      return { type: 'blocked', reason: kind, ...probe };
    case 'context_too_long':
      return { type: 'failed', reason: 'context_too_long' };
    case 'request':
      return { type: 'failed', reason: 'error' };
    case 'empty':
      return (attempt.emptyReplies ?? attempt.attempt) < EMPTY_ATTEMPTS
        ? retried(attempt, retryAfterMs)
        : { type: 'failed', reason: 'error' };
    case 'retry': {
      const isTried = attempt.attempt >= PATIENCE_ATTEMPTS && attempt.elapsedMs >= PATIENCE_MS;
      if (isTried || retryAfterMs > PATIENCE_MS) {
        return { type: 'blocked', reason: 'provider', ...probe };
      }
      return retried(attempt, retryAfterMs);
    }
  }
}

/**
 * What becomes of a failed attempt of a model call, as a function of its arguments.
 *
 * A probe of a blocked run goes on under the reason it has, with longer waits; only another reason
 * to block, or an end, is told to the workflow.
 */
export function decideFailure(error: ModelError, attempt: FailedAttempt): FailureDecision {
  const decision = undisturbed(error, attempt);
  if (attempt.blocked === undefined || decision.type === 'failed') return decision;
  if (decision.type === 'blocked' && decision.reason !== attempt.blocked) return decision;
  const delayMs = backoffMs(attempt, FIRST_PROBE_MS, LONGEST_PROBE_MS);
  return { type: 'retry', delayMs: Math.max(delayMs, askedWaitMs(error)) };
}

/** Milliseconds until the provider is asked again; 0 where it is not, or where nothing was said. */
function waitMs(decision: FailureDecision): number {
  switch (decision.type) {
    case 'retry':
      return decision.delayMs;
    case 'blocked':
      return decision.probeAfterMs ?? 0;
    case 'failed':
      return 0;
  }
}

/** The record of the attempt. `at`: Unix time in milliseconds. */
export function attemptReport(
  error: ModelError,
  decision: FailureDecision,
  { attempt, at }: { readonly attempt: number; readonly at: number },
): AttemptReport {
  const { type, status, requestId } = error.details;
  return {
    type: redact(type),
    ...(status !== undefined && { status }),
    attempt,
    waitMs: waitMs(decision),
    ...(requestId !== undefined && { requestId: redactMessage(requestId) }),
    at,
    message: presentable(error.message),
  };
}

/** What the attempts so far leave to the workflow. */
interface Left {
  readonly reports?: readonly AttemptReport[];
  /** A reply that has been paid for, for the call after a block. */
  readonly paid?: Json | undefined;
}

/**
 * The failure as Temporal takes it, with the reports of all failed attempts so far. Its type is the
 * newest report's. Only `retry` leaves the next attempt to Temporal; of the other two the workflow
 * must learn, so they carry an `ActivityProblem`. There is no cause: it would carry the texts of
 * foreign errors into the history.
 */
export function modelFailure(
  decision: FailureDecision,
  report: AttemptReport,
  left: Left = {},
): ApplicationFailure {
  const { message, type } = report;
  const reports = [...(left.reports ?? []), report];
  return ApplicationFailure.create({
    message,
    type,
    nonRetryable: decision.type !== 'retry',
    details: [
      decision.type === 'retry' ? { reports } : problemOf(decision, message, { ...left, reports }),
    ],
    ...(decision.type === 'retry' && { nextRetryDelay: decision.delayMs }),
  });
}

function problemOf(
  decision: Exclude<FailureDecision, { type: 'retry' }>,
  message: string,
  { reports = [], paid }: Left,
): ActivityProblem {
  if (decision.type === 'failed') return { ...decision, message, reports };
  const { reason, probeAfterMs: after } = decision;
  return {
    type: 'blocked',
    reason,
    message,
    ...(after !== undefined && { waitMs: after }),
    ...(paid !== undefined && { paid }),
    reports,
  };
}

/** One line without secrets, in whole characters, at most 300 of them. */
function presentable(text: string): string {
  return wellFormed(sample(text));
}

/** Text of a thrown value; `String` itself throws for some objects. */
function textOf(thrown: unknown): string {
  if (thrown instanceof Error) return `${thrown.name}: ${thrown.message}`;
  return typeof thrown === 'string' ? thrown : Object.prototype.toString.call(thrown);
}

/**
 * Whatever a model threw as a `ModelError`. Anything else breaks the contract of `Model`; it is
 * tried again and then shown as `blocked`, because a paid run should outlive a faulty adapter.
 */
export function asModelError(thrown: unknown): ModelError {
  if (isModelError(thrown)) return thrown;
  const message = `The model threw ${presentable(textOf(thrown))}`;
  return new ModelError(message, { kind: 'retry', type: 'unexpected' });
}
