import { hostname } from 'node:os';
import type { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { BlockedReason, ToolBlock } from '../core/blocked.js';
import type { ActivityProblem } from '../core/failure.js';

type BlockedProblem = Extract<ActivityProblem, { type: 'blocked' }>;

/** This worker in messages, as the server lists it among the pollers of a task queue. */
export const THIS_WORKER = `worker ${process.pid}@${hostname()}`;

const FIRST_PROBE_MS = 15_000;
const MAX_PROBE_MS = 300_000;

/**
 * Creates the failure that carries a problem to the workflow. By default Temporal does not retry
 * it: the workflow reads the problem and decides. It has no cause, because that would add the text
 * of foreign errors to the history.
 */
export function problemFailure(
  problem: ActivityProblem,
  options: {
    readonly type: string;
    readonly isRetryable?: boolean;
    /** Milliseconds before Temporal retries; absent: the interval of the retry policy. */
    readonly retryAfterMs?: number;
  },
): ApplicationFailure {
  const { type, isRetryable = false, retryAfterMs } = options;
  return ApplicationFailure.create({
    type,
    message: problem.message,
    nonRetryable: !isRetryable,
    details: [problem],
    ...(retryAfterMs !== undefined && { nextRetryDelay: retryAfterMs }),
  });
}

/**
 * Creates the failure that blocks the run. If the run is already blocked for this reason, the
 * attempt is a probe: Temporal retries it after `probeDelayMs`, without further events in the
 * history.
 */
export function blockedFailure(
  problem: Omit<BlockedProblem, 'type'>,
  probe: { readonly blocked: BlockedReason | undefined; readonly probeDelayMs: number },
): ApplicationFailure {
  const { reason } = problem;
  const isProbe = probe.blocked === reason;
  return problemFailure(
    { type: 'blocked', ...problem },
    { type: reason, isRetryable: isProbe, ...(isProbe && { retryAfterMs: probe.probeDelayMs }) },
  );
}

/** Why a tool call is blocked. */
export interface ToolBlocked {
  readonly reason: ToolBlock;
  /** For people: what is wrong, and the fix. */
  readonly message: string;
  /** Hash of the tool's current definition, which a person may accept. */
  readonly definition?: string;
}

/**
 * Creates the failure that blocks the run because of a tool, or because its agent lacks a function.
 */
export function blockedToolFailure(
  { info: { attempt } }: Context,
  { blocked }: { readonly blocked?: BlockedReason },
  found: ToolBlocked,
): ApplicationFailure {
  const { reason, message, definition } = found;
  const isOfWorker = reason === 'credentials';
  const first = isOfWorker ? FIRST_RETRY_MS : FIRST_PROBE_MS;
  const probeDelayMs =
    reason === 'tool_missing'
      ? searchDelayMs(attempt)
      : Math.min(first * 2 ** (attempt - 1), MAX_PROBE_MS);
  const problem = {
    reason,
    message: isOfWorker ? `${THIS_WORKER}: ${message}` : message,
    ...(isOfWorker && { elsewhere: true as const }),
    ...(definition !== undefined && { definition }),
  };
  return blockedFailure(problem, { blocked, probeDelayMs });
}

/** Milliseconds before the first retry of what another worker may have: a key, or a model. */
export const FIRST_RETRY_MS = 1_000;
const FIRST_SEARCH_MS = 500;
const SEARCH_GROWTH = 1.5;
/** The server polls workers in turn, so the worker that has the code may get the task late. */
const SHORT_SEARCH_MS = 5_000;
const SHORT_SEARCH_ATTEMPTS = 60;
const MAX_SEARCH_MS = 30_000;

/**
 * Returns the milliseconds before a probe searches the next worker for missing code. `attempt`
 * counts from 1. Temporal makes these retries, so they add no events to the history.
 */
export function searchDelayMs(attempt: number): number {
  const longest = attempt <= SHORT_SEARCH_ATTEMPTS ? SHORT_SEARCH_MS : MAX_SEARCH_MS;
  const delayMs = FIRST_SEARCH_MS * SEARCH_GROWTH ** Math.min(attempt - 1, 20);
  return Math.round(Math.min(delayMs, longest));
}

/** Creates the failure that leaves the work to another attempt, on this or another worker. */
export function retryFailure(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'Retry', message });
}

/**
 * Returns why an activity was interrupted, in the SDK's words. Only `CANCELLED` cancels its work;
 * any other cause (`WORKER_SHUTDOWN`, `PAUSED`, `NOT_FOUND`, …) leaves the work to another attempt.
 */
export function interruptionCause({ cancellationSignal }: Context): string {
  const reason: unknown = cancellationSignal.reason;
  return reason instanceof Error ? reason.message : 'unknown';
}
