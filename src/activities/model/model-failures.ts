import { wellFormed } from '../../core/text/text.js';
import { ApplicationFailure } from '@temporalio/common';
import type {
  ModelBlock,
  FailReason,
  ReplyUsage,
  AttemptReport,
} from '../../core/transcript/outcome.js';
import type { Json } from '../../core/text/json.js';
import type { BudgetName } from '../../core/definition/definition.js';
import type { RefusedPart } from '../../core/transcript/messages.js';
import { isModelError, ModelError, type ModelReply, sample } from '../../models/model.js';
import { MAX_WAIT_MS } from '../../models/wire/errors.js';
import { redact, redactMessage } from '../../secrets/redact.js';
import { FIRST_RETRY_MS, problemFailure, searchDelayMs, THIS_WORKER } from '../attempt.js';

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;
/**
 * A provider that fails for this long, over at least `PATIENCE_ATTEMPTS` attempts, blocks the run. A call
 * waits no longer for its model's shared rate.
 */
export const PATIENCE_MS = 120_000;
const PATIENCE_ATTEMPTS = 3;
const SAMPLE_ATTEMPTS = 3;
/** The reasons for which another worker, with another configuration, may succeed at once. */
const OF_WORKER: readonly string[] = ['credentials', 'model'] satisfies readonly ModelBlock[];
/** The type of a failure for which a model's shared rate had no room: the call has waited long enough. */
export const RATE = 'rate';
/** The type of a failure for which a budget across runs had no room: no other model would be cheaper for it. */
export const BUDGET = 'shared_budget';
/** The type of a failure whose cause is the code of a custom model: its reply has another form than a reply has. */
export const BAD_REPLY = 'bad_reply';
/** The types of failures for which no request was sent, so that retries cost nothing. */
const UNSENT: readonly string[] = ['no_credentials', 'decide_missing', RATE];
const FIRST_PROBE_MS = 30_000;
const MAX_PROBE_MS = 600_000;

/** The decision after a failed attempt. */
export type FailureDecision =
  | { readonly type: 'retry'; readonly delayMs: number }
  | {
      readonly type: 'blocked';
      readonly reason: ModelBlock;
      /** Milliseconds that the provider asks to wait; absent if it did not specify any. */
      readonly probeAfterMs?: number;
    }
  | { readonly type: 'failed'; readonly reason: Extract<FailReason, 'context_too_long' | 'error'> };

/** The position of an attempt in its activity. */
export interface FailedAttempt {
  /** Counted from 1. */
  readonly attempt: number;
  /** Milliseconds since the activity was first scheduled. */
  readonly elapsedMs: number;
  /** Why the run is already blocked, if this attempt is a probe. */
  readonly blocked?: ModelBlock;
  /**
   * Number of failed attempts that may follow this one; absent: the run waits until the model
   * answers.
   */
  readonly left?: number;
  /**
   * The number of empty and malformed replies, including this one; absent: all attempts count.
   */
  readonly uselessReplies?: number;
  /** Returns a number from 0 up to 1, for the jitter. */
  readonly random: () => number;
}

/**
 * Returns a wait that doubles with each attempt. Half of it is random, so runs that failed together
 * are not retried together.
 */
function backoffMs(attempt: FailedAttempt, first: number, longest: number): number {
  const whole = Math.min(first * 2 ** (attempt.attempt - 1), longest);
  return Math.round(whole * (0.5 + attempt.random() / 2));
}

function requestedWaitMs(error: ModelError): number {
  return Math.min(error.details.retryAfterMs ?? 0, MAX_WAIT_MS);
}

function retryAfter(attempt: FailedAttempt, retryAfterMs: number): FailureDecision {
  const delayMs = backoffMs(attempt, FIRST_DELAY_MS, MAX_DELAY_MS);
  return { type: 'retry', delayMs: Math.max(delayMs, retryAfterMs) };
}

/** Decides about an attempt in a run that is not blocked. */
function decideUnblocked(error: ModelError, attempt: FailedAttempt): FailureDecision {
  const { kind, type } = error.details;
  if (type === BUDGET) return { type: 'blocked', reason: 'budget' };
  const retryAfterMs = requestedWaitMs(error);
  const probe = retryAfterMs > 0 ? { probeAfterMs: retryAfterMs } : {};
  switch (kind) {
    case 'quota':
    case 'credentials':
    case 'model':
    case 'bad_request':
      return { type: 'blocked', reason: kind, ...probe };
    case 'context_too_long':
      return { type: 'failed', reason: 'context_too_long' };
    case 'request':
      return { type: 'failed', reason: 'error' };
    case 'empty':
    case 'malformed':
      return (attempt.uselessReplies ?? attempt.attempt) < SAMPLE_ATTEMPTS
        ? retryAfter(attempt, retryAfterMs)
        : { type: 'failed', reason: 'error' };
    case 'retry': {
      const isExhausted = attempt.attempt >= PATIENCE_ATTEMPTS && attempt.elapsedMs >= PATIENCE_MS;
      if (isExhausted || retryAfterMs > PATIENCE_MS || type === RATE) {
        return { type: 'blocked', reason: 'provider', ...probe };
      }
      return retryAfter(attempt, retryAfterMs);
    }
  }
}

/**
 * Decides what follows a failed attempt of a model call, as a function of its arguments. A probe of
 * a blocked run is retried with longer waits; the workflow learns only of a different reason to
 * block, or of an end.
 */
export function decideFailure(error: ModelError, attempt: FailedAttempt): FailureDecision {
  const decision = decideUnblocked(error, attempt);
  // What was paid for is not lost for a budget, even if the run does not wait for its model.
  const isBudget = error.details.type === BUDGET;
  if (attempt.left !== undefined && !isBudget) return decideBounded(decision, attempt.left);
  if (attempt.blocked === undefined || decision.type === 'failed') return decision;
  if (decision.type === 'blocked' && decision.reason !== attempt.blocked) return decision;
  const delayMs = probeDelayMs(error, attempt);
  // The budget may be raised before its day ends.
  if (isBudget) return { type: 'retry', delayMs: Math.min(delayMs, untilNextDay(error, attempt)) };
  return { type: 'retry', delayMs: Math.max(delayMs, requestedWaitMs(error)) };
}

/** The time in ms over which the calls that wait for the next day begin. */
const NEXT_DAY_MS = 5_000;

function untilNextDay({ details }: ModelError, { random }: FailedAttempt): number {
  return Math.round((details.retryAfterMs ?? MAX_PROBE_MS) + random() * NEXT_DAY_MS);
}

/** Returns the milliseconds between two probes. The first ones are soon if they may reach another worker. */
function probeDelayMs({ details: { kind, type } }: ModelError, attempt: FailedAttempt): number {
  if (UNSENT.includes(type)) return searchDelayMs(attempt.attempt);
  return backoffMs(
    attempt,
    OF_WORKER.includes(kind) ? FIRST_RETRY_MS : FIRST_PROBE_MS,
    MAX_PROBE_MS,
  );
}

/**
 * Decides for a run that does not wait for its model: a problem that would block it ends the turn.
 */
function decideBounded(decision: FailureDecision, left: number): FailureDecision {
  const goesOn = decision.type === 'failed' || (decision.type === 'retry' && left > 0);
  return goesOn ? decision : { type: 'failed', reason: 'error' };
}

/** Why a reply cannot be used as an answer, by its `finish`, and what helps. */
const NO_ANSWER = {
  length: {
    type: 'truncated',
    text: 'was cut at the output limit; raise settings.maxOutputTokens, or ask for less',
  },
  filtered: { type: 'filtered', text: "was withheld by the provider's content filter" },
  refused: { type: 'refused', text: 'is a refusal' },
} as const;

/** Throws a `ModelError` for a reply that is cut, withheld, or refused: a retry would end the same way. */
export function assertAnswer({ finish, text }: ModelReply, model: string): void {
  if (finish === 'stop' || finish === 'calls') return;
  const { type, text: what } = NO_ANSWER[finish];
  const words = finish === 'refused' && text !== '' ? `: ${sample(text)}` : '';
  throw new ModelError(`the reply of model "${model}" ${what}${words}`, { kind: 'request', type });
}

/** The types of failures whose cause is an attachment. */
const ATTACHMENT_TYPES = /^(?:no_images|no_files|bad_attachment)$|image/;
const ATTACHMENT_TEXT =
  /\b(?:images?|image_url|input_image|pictures?|pdfs?|attachments?|documents?|base64|vision|multimodal|media)\b/i;
/** The types of failures whose cause is not in the messages. */
const NOT_OF_MESSAGES = [
  'bad_setting',
  'no_native_tools',
  'no_computer_use',
  'no_logprobs',
  'answer_too_large',
  'items_unreadable',
  BAD_REPLY,
  // Of an agent's decide function: it threw, or it wanted more than its budget allows.
  'decide',
  'limit',
];

/** Returns what of the messages is at fault; undefined if nothing in them is. */
export function findRefusedPart({ details, message }: ModelError): RefusedPart | undefined {
  const { kind, type } = details;
  if ((kind !== 'request' && kind !== 'bad_request') || NOT_OF_MESSAGES.includes(type)) {
    return undefined;
  }
  const isAttachment = ATTACHMENT_TYPES.test(type) || ATTACHMENT_TEXT.test(message);
  return isAttachment ? 'attachments' : 'message';
}

/** Returns the milliseconds before the next attempt; 0 if none follows or the time is unknown. */
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

/** Returns the report of a failed attempt. `at` is the Unix time in milliseconds. */
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
    message: toOneLine(error.message),
  };
}

/** The data that earlier attempts pass to the workflow. */
interface Earlier {
  readonly reports?: readonly AttemptReport[];
  /** A reply that has been paid for, for the call after a block. */
  readonly paid?: Json | undefined;
  /** The usage of a decision function's model calls. */
  readonly used?: ReplyUsage;
  /** The limit that allowed a decision function no further model call. */
  readonly limit?: BudgetName;
  /** What of the messages the provider refused. */
  readonly refused?: RefusedPart | undefined;
  /** Why a failed turn ends, after the report's message. */
  readonly why?: string;
}

/** Returns why no further attempt follows useless replies; empty for another error. */
export function uselessText({ details: { kind } }: ModelError, replies: number): string {
  if ((kind !== 'empty' && kind !== 'malformed') || replies < 2) return '';
  return `; ${replies} replies could not be used, and each may have been paid for, so no further one is requested`;
}

/**
 * Creates the failure of an attempt, with the reports of all failed attempts. Its type is that of
 * the newest report. Temporal retries a `retry`; the other two carry an `ActivityProblem` to the
 * workflow.
 */
export function modelFailure(
  decision: FailureDecision,
  report: AttemptReport,
  { reports: earlier = [], paid, used, limit, refused, why = '' }: Earlier = {},
): ApplicationFailure {
  const { message, type } = report;
  const reports = [...earlier, report];
  switch (decision.type) {
    case 'retry': {
      const nextRetryDelay = decision.delayMs;
      const details = [{ reports, ...(used && { used }) }];
      return ApplicationFailure.create({ message, type, details, nextRetryDelay });
    }
    case 'failed':
      return problemFailure(
        {
          ...decision,
          message: `${message}${why}`,
          reports,
          ...(used && { used }),
          ...(limit && { limit }),
          ...(refused && { refused }),
        },
        { type },
      );
    case 'blocked': {
      const { reason, probeAfterMs } = decision;
      const problem = {
        type: 'blocked',
        reason,
        message,
        ...(probeAfterMs !== undefined && { waitMs: probeAfterMs }),
        ...(OF_WORKER.includes(reason) && { elsewhere: true as const }),
        ...(paid !== undefined && { paid }),
        reports,
        ...(used && { used }),
      } as const;
      return problemFailure(problem, { type });
    }
  }
}

/** Returns one line of at most 300 whole characters, without secrets. */
function toOneLine(text: string): string {
  return wellFormed(sample(text));
}

/** Returns the text of a thrown value. `String` itself throws for some objects. */
function textOf(thrown: unknown): string {
  if (thrown instanceof Error) return `${thrown.name}: ${thrown.message}`;
  return typeof thrown === 'string' ? thrown : Object.prototype.toString.call(thrown);
}

/** A model that a worker's config does not have, although its name needs an entry. */
interface LackedModel {
  readonly model: string;
  /** The name that may be meant; undefined if none is near. */
  readonly meant: string | undefined;
}

/**
 * Returns an error with the name of this worker, if another worker may not have it. `lacked`: the model, if
 * the worker's config does not have it; then the error says what helps this run, which keeps the agent's
 * definition, and so the name, until its turn is over.
 */
export function namingWorker(error: ModelError, lacked: LackedModel | null): ModelError {
  const { details, message } = error;
  if (!OF_WORKER.includes(details.kind)) return error;
  const restart =
    details.type === 'no_credentials'
      ? ' Set it in the environment of that worker, and restart the worker.'
      : '';
  if (lacked === null) return new ModelError(`${THIS_WORKER}: ${message}${restart}`, details);
  const name = JSON.stringify(lacked.model);
  const lack = `no entry ${name} in \`models\` of its config`;
  const meant = lacked.meant && `; did you mean ${JSON.stringify(lacked.meant)}? This`;
  // It precedes the error, because a long text is cut at its end.
  const fix = `${meant ?? '; this'} run keeps the name: add the entry, or cancel the run and start another`;
  const text = `${THIS_WORKER} (${lack}${fix}): ${message}${restart}`;
  return new ModelError(text, details);
}

/**
 * Returns a model's thrown value as a `ModelError`. Anything else violates the contract of `Model`.
 * It is retried and then blocks the run, because a paid run should survive a faulty adapter.
 */
export function toModelError(thrown: unknown): ModelError {
  if (isModelError(thrown)) return thrown;
  const message = `The model threw ${toOneLine(textOf(thrown))}`;
  return new ModelError(message, { kind: 'retry', type: 'unexpected' });
}
