import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import { type Context, type Info, log } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { ActivityProblem } from '../core/interpret/block.js';
import type { Json, JsonObject } from '../core/text/json.js';
import { formatDuration } from '../core/text/text.js';
import type { BlockedReason, ToolBlock } from '../core/transcript/outcome.js';
import { redactJson, redactMessage } from '../secrets/redact.js';
import { StrayError, ToolError, runAttributed, userFrames } from '../tools/errors.js';
import { normalizeError, toPlain } from '../tools/result/plain.js';

/** How a bounded function ended. */
type BoundedResult<T> =
  | { readonly type: 'value'; readonly value: T }
  | { readonly type: 'thrown'; readonly error: unknown }
  | { readonly type: 'timeout' }
  | { readonly type: 'cancelled' };

/** The limits of a bounded function, and its name in errors. */
interface Bounds {
  /** A name for people, such as `tool "refund"`. */
  readonly name: string;
  readonly timeoutMs: number;
  /** Cancels the function; usually the activity's own signal. */
  readonly cancelled: AbortSignal;
}

/** Milliseconds for a function that honors its signal to report its result. */
const GRACE_MS = 2_000;

/**
 * Runs a user function or a model call, subject to a time limit and the activity's cancellation.
 * Resolves when the function ends, or `GRACE_MS` after its signal was aborted: a function that
 * ignores its signal is abandoned, and its slot on the worker becomes free. An error that the
 * function raises outside its promise counts as thrown, and aborts the signal. Never rejects.
 */
export async function runBounded<T>(
  run: (signal: AbortSignal) => Promise<T>,
  bounds: Bounds,
): Promise<BoundedResult<T>> {
  const abort = new AbortController();
  const { signal } = abort;
  // A tool may listen any number of times, such as once for each of its requests.
  setMaxListeners(0, signal);
  // Node would keep a signal from AbortSignal.any, and thus the whole activity, in memory
  // indefinitely.
  const cancel = (): void => abort.abort(bounds.cancelled.reason);
  if (bounds.cancelled.aborted) cancel();
  else bounds.cancelled.addEventListener('abort', cancel, { once: true });
  const timers: NodeJS.Timeout[] = [];
  const after = (ms: number): Promise<void> =>
    new Promise((resolve) => timers.push(setTimeout(resolve, ms)));
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const timedOut = after(bounds.timeoutMs).then(() =>
    abort.abort(new Error(`timed out after ${formatDuration(bounds.timeoutMs, { as: 'exact' })}`)),
  );
  const abandoned = aborted.then(() => after(GRACE_MS)).then(() => interrupted(bounds.cancelled));
  try {
    return await Promise.race([
      runToEnd(run, { abort, bounds }),
      abandoned,
      timedOut.then(() => abandoned),
    ]);
  } finally {
    for (const timer of timers) clearTimeout(timer);
    bounds.cancelled.removeEventListener('abort', cancel);
  }
}

/**
 * Runs a function like `runBounded`, and returns its value. Throws what the function threw, the
 * reason of the cancellation, or at the time limit the error that `timeoutError` creates.
 */
export async function runBoundedOrThrow<T>(
  run: (signal: AbortSignal) => Promise<T>,
  bounds: Bounds & { readonly timeoutError: () => Error },
): Promise<T> {
  const end = await runBounded(run, bounds);
  switch (end.type) {
    case 'value':
      return end.value;
    case 'thrown':
      throw end.error;
    case 'cancelled':
      throw bounds.cancelled.reason;
    case 'timeout':
      throw bounds.timeoutError();
  }
}

async function runToEnd<T>(
  run: (signal: AbortSignal) => Promise<T>,
  { abort, bounds }: { abort: AbortController; bounds: Bounds },
): Promise<BoundedResult<T>> {
  const { signal } = abort;
  try {
    return { type: 'value', value: await runAttributed(bounds.name, () => run(signal)) };
  } catch (error) {
    // An error thrown after an abort does not show the function's earlier side effects.
    if (signal.aborted) return interrupted(bounds.cancelled);
    if (error instanceof StrayError) abort.abort(error);
    logThrown(bounds.name, error);
    return { type: 'thrown', error };
  }
}

/**
 * Logs where in the user's code a function threw. The recorded failure has no stack, because models
 * and other readers of the run need no paths of this machine. A `ToolError` is an answer.
 */
function logThrown(name: string, error: unknown): void {
  const frames = error instanceof ToolError ? [] : userFrames(error);
  if (frames.length === 0) return;
  const where = frames.map((frame) => `at ${frame}`).join(', ');
  log.warn(redactMessage(`${name} threw: ${normalizeError(error).message}; ${where}`));
}

function interrupted(cancelled: AbortSignal): BoundedResult<never> {
  return { type: cancelled.aborted ? 'cancelled' : 'timeout' };
}

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
    /** Let the SDK log no warning. */
    readonly isSilent?: boolean;
  },
): ApplicationFailure {
  const { type, isRetryable = false, retryAfterMs, isSilent = false } = options;
  return ApplicationFailure.create({
    type,
    message: problem.message,
    nonRetryable: !isRetryable,
    details: [problem],
    ...(retryAfterMs !== undefined && { nextRetryDelay: retryAfterMs }),
    ...(isSilent && { category: ApplicationFailureCategory.BENIGN }),
  });
}

/** Creates the failure that refuses the input of a run. The run logs it. */
export function refusedFailure(message: string, type: string): ApplicationFailure {
  const problem = { type: 'failed', reason: 'input', message } as const;
  return problemFailure(problem, { type, isSilent: true });
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

/** The assumed heartbeat timeout in ms for activities without one. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** A clock that is further behind the server's than this is wrong. */
const MAX_BEHIND_MS = 1_000;

/**
 * The most by which the server's clock was ahead of the monotonic clock when a task arrived, in ms:
 * a lower bound of the server's time, even if the clock of this machine is wrong or jumps.
 */
let serverAheadMs = -Infinity;

/**
 * Throws if the server has already abandoned this attempt. A worker that was frozen or disconnected
 * while it held the task must not execute a `once` tool again, or pay for a recorded reply again.
 * Only an attempt that starts late (half the heartbeat timeout after it was scheduled), or whose age
 * is unknown because this machine's clock is behind, asks the server, with one heartbeat without
 * details; the others cost nothing. A worker that freezes after this check cannot be stopped. Only
 * a destination that honors the idempotency key, or refuses an early `scheduledAt`, can distinguish
 * the two executions. Returns whether it asked the server.
 */
export async function assertCurrentAttempt({ info, client }: Context): Promise<boolean> {
  const lateMs = latenessOf(info.currentAttemptScheduledTimestampMs);
  if (lateMs < (info.heartbeatTimeoutMs ?? DEFAULT_TIMEOUT_MS) / 2) return false;
  try {
    await client.workflowService.recordActivityTaskHeartbeat({
      namespace: info.namespace,
      taskToken: info.taskToken,
    });
    return true;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const late = Number.isFinite(lateMs) ? `${Math.round(lateMs)} ms late` : 'at an unknown time';
    throw new Error(
      `the attempt started ${late}, and the server does not confirm that it still counts: ${why}`,
      { cause: error },
    );
  }
}

/**
 * Returns how long ago the server scheduled the attempt, at least; Infinity if that is unknown. The
 * time of day alone does not tell: on a machine whose clock is behind, no attempt would ever be
 * late. The monotonic clock alone does not either: it may stop while the machine sleeps.
 */
function latenessOf(scheduledAt: number): number {
  const byClock = Date.now() - scheduledAt;
  if (byClock < -MAX_BEHIND_MS && serverAheadMs === -Infinity) {
    serverAheadMs = scheduledAt - performance.now();
    return Infinity;
  }
  serverAheadMs = Math.max(serverAheadMs, scheduledAt - performance.now());
  return Math.max(byClock, performance.now() + serverAheadMs - scheduledAt);
}

/**
 * Share of the timeout before the first heartbeat. Temporal Cloud bills each one, so short work
 * sends none.
 */
const FIRST_SHARE = 2 / 3;
const NEXT_SHARE = 1 / 3;

/**
 * Sends heartbeats from two thirds of the heartbeat timeout on, until the returned function is called. Each
 * carries what `details` returns at that moment. The heartbeats come from the main event loop on purpose:
 * a blocked loop is detected as a lost worker.
 */
export function startHeartbeat(
  context: Context,
  details: () => Json | undefined = () => undefined,
): () => void {
  const timeoutMs = context.info.heartbeatTimeoutMs;
  if (timeoutMs === undefined) return () => undefined;
  let timer: NodeJS.Timeout | undefined;
  const schedule = (delayMs: number): void => {
    timer = setTimeout(() => {
      context.heartbeat(details());
      schedule(timeoutMs * NEXT_SHARE);
    }, delayMs);
  };
  schedule(timeoutMs * FIRST_SHARE);
  return () => clearTimeout(timer);
}

/** Runs work with heartbeats, whose details are those of `startHeartbeat`. */
export async function withHeartbeat<T>(
  context: Context,
  work: () => Promise<T>,
  details?: () => Json | undefined,
): Promise<T> {
  const stopHeartbeat = startHeartbeat(context, details);
  try {
    return await work();
  } finally {
    stopHeartbeat();
  }
}

const MAX_DETAILS_CHARACTERS = 4_000;

/**
 * Creates the `log` of a user's function. It writes to the worker's log, bounded and without
 * secrets.
 */
export function createLog(context: Context): (message: string, fields?: JsonObject) => void {
  return (message, fields) =>
    context.log.info(redactMessage(message), { fields: toSafeDetails(fields) });
}

/**
 * Returns details for people as JSON without secrets, or undefined if they have over 4,000
 * characters.
 */
export function toSafeDetails(details: Json | undefined): unknown {
  if (details === undefined) return undefined;
  const safe = redactJson(toPlain(details));
  return JSON.stringify(safe).length <= MAX_DETAILS_CHARACTERS ? safe : undefined;
}

/** Returns the workflow id and the Temporal run id of the run that scheduled an activity. */
export function toRunIds({ workflowExecution }: Info): { id: string; runId: string } {
  const { workflowId = '', runId = '' } = workflowExecution ?? {};
  return { id: workflowId, runId };
}
