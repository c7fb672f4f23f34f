import { setTimeout as pause } from 'node:timers/promises';
import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  isGrpcServiceError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import {
  InputError,
  NoRunError,
  NotDeliveredError,
  RefusedError,
  type WorkerState,
} from '../core/errors.js';
import { shownPeople, visible } from '../core/state/summaries.js';
import { type Duration, show, toMs } from '../core/text/text.js';
import type { RefusalReason } from '../core/transcript/request.js';
import { GRPC, grpcCode, isUnanswered, serverAddress, unreachable } from '../temporal/grpc.js';
import { listPollers, livePollers } from '../temporal/pollers.js';
import { describeWorkflow } from '../temporal/server-answers.js';

/** The time limit for the server's answer. After it, the result is unknown. */
const ANSWER_MS = 2_000;

/**
 * Returns the task queue of a run, or `taskQueue` if there is no such run. Returns null if unknown.
 */
export async function findTaskQueue(
  client: Client,
  { id, taskQueue }: { readonly id: string; readonly taskQueue?: string },
): Promise<string | null> {
  const found = await withinDeadline(client, async () => {
    const { taskQueue: queue } = await describeWorkflow(client, id);
    return queue;
  });
  return found ?? taskQueue ?? null;
}

/**
 * Returns whether a worker polls the queue, according to the server; null if it does not answer.
 */
export async function checkForWorker(client: Client, taskQueue: string): Promise<WorkerState> {
  const { namespace } = client.options;
  const pollers = await withinDeadline(client, () => listPollers(client, { namespace, taskQueue }));
  if (pollers === null) return null;
  return livePollers(pollers, Date.now()).length === 0 ? 'missing' : 'silent';
}

async function withinDeadline<T>(client: Client, read: () => Promise<T>): Promise<T | null> {
  try {
    return await client.withDeadline(Date.now() + ANSWER_MS, read);
  } catch {
    return null;
  }
}

/** The type of the failure with which a run refuses a decision; its first detail is the reason. */
const REFUSED = 'Refused';

/** All reasons; the record type makes the compiler report a missing one. */
const REASONS: Readonly<Record<RefusalReason, true>> = {
  malformed: true,
  unknown_request: true,
  decided: true,
  expired: true,
  wrong_digest: true,
  not_offered: true,
  not_a_decider: true,
  checking: true,
  too_large: true,
  unclear: true,
  unbound: true,
  run_ended: true,
};

/**
 * Returns why a run refused a decision. Returns null for any other error, and for a reason that
 * this version does not know, such as one of a newer worker.
 */
export function refusalReason(error: unknown): RefusalReason | null {
  if (!(error instanceof WorkflowUpdateFailedError)) return null;
  const { cause } = error;
  if (!(cause instanceof ApplicationFailure) || cause.type !== REFUSED) return null;
  const [reason]: readonly unknown[] = cause.details ?? [];
  return isReason(reason) ? reason : null;
}

function isReason(value: unknown): value is RefusalReason {
  return typeof value === 'string' && Object.hasOwn(REASONS, value);
}

/** How long to try sending a message or decision. */
export interface UpdateOptions {
  /**
   * How long to try. A duration: ms, or words such as '1 minute', which is the default: after two
   * workers have failed, a third one can still answer.
   */
  readonly within?: Duration;
  /** Ends the wait with a `NotDeliveredError`; what was sent may still arrive. Default: none. */
  readonly signal?: AbortSignal;
}

/** The run that an update is sent to. */
export interface UpdateTarget {
  /** The id of the run. */
  readonly id: string;
  /** The task queue of a run that may not exist yet. */
  readonly taskQueue?: string;
  /** The id of the message, if the update is one. */
  readonly messageId?: string;
}

const WITHIN_MS = 60_000;
/** The time for one try: about as long as the server takes to notice a frozen worker. */
const TRY_MS = 10_000;
/** The pause before the next try doubles from the first to the last of these, with jitter. */
const PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;
/**
 * Maximum updates that one client has in flight in one run. The server admits ten from all clients
 * together and refuses the others, which would then try again and again.
 */
const MAX_IN_FLIGHT = 8;
/** The minimum time for one try; a shorter one would only hide why the earlier ones failed. */
const MIN_TRY_MS = 1_000;
/** The run did not accept the update, and may accept the next one. */
const TRANSIENT: readonly number[] = [
  GRPC.resourceExhausted,
  GRPC.failedPrecondition,
  GRPC.aborted,
];
/** The server's error types for updates that were pending when a segment ended. */
const SEGMENT_ENDED = ['AcceptedUpdateCompletedWorkflow', 'UnprocessedUpdate'];

/**
 * The state of an update after a failed try: `refused` has no effect and never will,
 * `not_delivered` has no effect, and `unknown` may have one.
 */
type Delivery = 'refused' | 'not_delivered' | 'unknown';

/** The state of an update after a failed try, and whether to retry. */
interface FailedTry {
  readonly delivery: Delivery;
  readonly shouldRetry: boolean;
  /** Whether the run has ended. An earlier try may have reached it before that. */
  readonly hasEnded?: boolean;
  /** Whether the server has no such run: nothing was started with this id, or it was deleted. */
  readonly isUnknown?: boolean;
}

/**
 * Sends an update and waits for its answer, and retries until the deadline: while the run continues
 * in a new segment, while its inbox is full, and while no worker answers. `update` must therefore
 * be idempotent. Rejects with a `RefusedError` or a `NotDeliveredError`, with a `NoRunError` if the
 * server has no such run, and with an `InputError` if `within` is invalid.
 */
export async function executeUpdate<T>(
  client: Client,
  target: UpdateTarget,
  update: () => Promise<T>,
  { within = WITHIN_MS, signal }: UpdateOptions = {},
): Promise<T> {
  const withinMs = toMs(within);
  if (!(withinMs > 0)) {
    const message = `within: expected a whole number of ms or words such as "30 seconds", got ${show(within)}`;
    throw new InputError(message);
  }
  const giveUpAt = performance.now() + withinMs;
  let mayArrive = false;
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      signal?.throwIfAborted();
      await takeTurn(client, target.id, { until: giveUpAt - MIN_TRY_MS, signal });
      return await sendInTurn(client, target.id, async () =>
        tryOnce(client, update, {
          withinMs: Math.min(TRY_MS, giveUpAt - performance.now()),
          signal,
        }),
      );
    } catch (error) {
      const failed = await classify(client, target, error);
      mayArrive ||= failed.delivery === 'unknown';
      const isLast = performance.now() + PAUSE_MS + MIN_TRY_MS >= giveUpAt;
      if (signal?.aborted || !failed.shouldRetry || isLast) {
        const { hasEnded = false, delivery: last } = failed;
        // Only a refusal by the run itself also covers the earlier tries.
        const delivery = mayArrive && (hasEnded || last === 'not_delivered') ? 'unknown' : last;
        const end = { ...failed, delivery, error };
        throw await toDeliveryError(client, target, end, { withinMs, signal });
      }
    }
    await pause(pauseMs * (0.5 + Math.random() / 2));
  }
}

/** The updates of one client that are in flight in one run, and those that wait for their turn. */
interface Gate {
  inFlight: number;
  readonly waiting: Set<() => void>;
}

const gates = new WeakMap<Client, Map<string, Gate>>();

/** The update has waited for its turn until its deadline, and was not sent. */
class NotSentError extends Error {
  constructor() {
    super('other updates of this client wait for the run');
  }
}

/**
 * Resolves as soon as fewer than the maximum are in flight, in the order of arrival. Rejects with a
 * `NotSentError` at the time `until` of the monotonic clock, and if the signal aborts.
 */
async function takeTurn(
  client: Client,
  id: string,
  { until, signal }: { readonly until: number; readonly signal: AbortSignal | undefined },
): Promise<void> {
  const ofClient = gates.get(client) ?? new Map<string, Gate>();
  gates.set(client, ofClient);
  const gate = ofClient.get(id) ?? { inFlight: 0, waiting: new Set() };
  ofClient.set(id, gate);
  if (gate.inFlight < MAX_IN_FLIGHT) {
    gate.inFlight += 1;
    return;
  }
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => {
      gate.waiting.delete(begin);
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
    };
    const begin = (): void => {
      stop();
      resolve();
    };
    const giveUp = (): void => {
      stop();
      reject(new NotSentError());
    };
    const timer = setTimeout(giveUp, Math.max(0, until - performance.now()));
    signal?.addEventListener('abort', giveUp, { once: true });
    gate.waiting.add(begin);
  });
}

/** Sends an update that has its turn, and passes the turn on. */
async function sendInTurn<T>(client: Client, id: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } finally {
    const ofClient = gates.get(client);
    const gate = ofClient?.get(id);
    const [next] = gate?.waiting ?? [];
    // The next one takes this one's place.
    if (next !== undefined) next();
    else if (gate !== undefined) gate.inFlight -= 1;
    if (gate?.inFlight === 0) ofClient?.delete(id);
  }
}

/** The SDK never removes its listener from the signal, so each try gets its own signal. */
async function tryOnce<T>(
  client: Client,
  update: () => Promise<T>,
  { withinMs, signal }: { readonly withinMs: number; readonly signal: AbortSignal | undefined },
): Promise<T> {
  const own = new AbortController();
  const abort = (): void => own.abort();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return await client.withAbortSignal(own.signal, () =>
      client.withDeadline(Date.now() + withinMs, update),
    );
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

async function classify(client: Client, { id }: UpdateTarget, error: unknown): Promise<FailedTry> {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) {
    return { delivery: 'unknown', shouldRetry: true };
  }
  if (error instanceof WorkflowUpdateFailedError) {
    const shouldRetry = isSegmentEnd(error);
    return { delivery: shouldRetry ? 'not_delivered' : 'refused', shouldRetry };
  }
  if (error instanceof WorkflowExecutionAlreadyStartedError) {
    return { delivery: 'refused', shouldRetry: false, hasEnded: true };
  }
  if (error instanceof WorkflowNotFoundError) {
    // A segment that has just ended cannot be found, but the run may have continued.
    const state = await stateOf(client, id);
    if (state === 'open') return { delivery: 'not_delivered', shouldRetry: true };
    return { delivery: 'refused', shouldRetry: false, hasEnded: true, isUnknown: state === null };
  }
  if (error instanceof NotSentError) return { delivery: 'not_delivered', shouldRetry: true };
  // The run may have accepted the update.
  if (isUnanswered(error)) return { delivery: 'unknown', shouldRetry: true };
  const code = grpcCode(error);
  // The server did not refuse it: perhaps only the answer cannot be decoded.
  if (code === null) return { delivery: 'unknown', shouldRetry: false };
  return { delivery: 'not_delivered', shouldRetry: TRANSIENT.includes(code) };
}

/**
 * Returns whether the update failed only because its segment ended, so the next segment can accept
 * it.
 */
export function isSegmentEnd(error: unknown): boolean {
  if (!(error instanceof WorkflowUpdateFailedError)) return false;
  const { cause } = error;
  return cause instanceof ApplicationFailure && SEGMENT_ENDED.includes(cause.type ?? '');
}

/** Returns whether a run is open, also if the server is unreachable; null for an unknown run. */
async function stateOf(client: Client, id: string): Promise<'open' | 'ended' | null> {
  try {
    const { status } = await describeWorkflow(client, id);
    return status.name === 'RUNNING' || status.name === 'CONTINUED_AS_NEW' ? 'open' : 'ended';
  } catch (error) {
    return error instanceof WorkflowNotFoundError ? null : 'open';
  }
}

async function toDeliveryError(
  client: Client,
  target: UpdateTarget,
  { delivery, hasEnded = false, isUnknown = false, error }: FailedTry & { readonly error: unknown },
  { withinMs, signal }: { readonly withinMs: number; readonly signal: AbortSignal | undefined },
): Promise<RefusedError | NotDeliveredError | NoRunError> {
  const { id, messageId } = target;
  const known = { mayArrive: delivery === 'unknown', cause: error, messageId };
  const advice =
    hasEnded && delivery === 'unknown'
      ? 'the run may have received it earlier; read its transcript before you send it to another run'
      : adviceFor(delivery, messageId);
  if (delivery === 'refused' && isUnknown)
    return new NoRunError(`there is no run "${visible(id)}"`, { cause: error });
  if (delivery === 'refused') {
    const reason = hasEnded ? 'run_ended' : refusalReason(error);
    // The SDK's error about a refusal by the run would only repeat it.
    const around = error instanceof WorkflowUpdateFailedError ? {} : { cause: error };
    return new RefusedError(shownPeople(reasonOf(error, id)), { ...around, reason });
  }
  if (signal?.aborted) {
    return new NotDeliveredError(`the wait for an answer was aborted; ${advice}`, known);
  }
  const isSilent =
    error instanceof WorkflowUpdateRPCTimeoutOrCancelledError || error instanceof NotSentError;
  if (!isSilent && isUnanswered(error)) {
    const { message } = unreachable(serverAddress(client), error);
    return new NotDeliveredError(`${message} ${sentence(advice)}`, known);
  }
  if (!isSilent) {
    return new NotDeliveredError(`${reasonOf(error, id)}; ${advice}`, known);
  }
  const queue = await findTaskQueue(client, target);
  const worker = queue === null ? null : await checkForWorker(client, queue);
  const seconds = Math.round(withinMs / 100) / 10;
  const why = `no answer within ${seconds} s${whyOf(worker, queue ?? '')}`;
  return new NotDeliveredError(`${why}; ${advice}`, { ...known, worker });
}

function whyOf(worker: WorkerState, queue: string): string {
  if (worker === null) return '';
  return worker === 'missing'
    ? `: no worker polls task queue "${visible(queue)}"`
    : `: a worker polls task queue "${visible(queue)}" but does not answer; it may be frozen, disconnected, or busy`;
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

/** Returns advice for the caller; empty if the reason is enough. */
function adviceFor(delivery: Delivery, messageId: string | undefined): string {
  if (delivery === 'refused') return '';
  if (delivery === 'not_delivered') return 'it was not delivered, so it is safe to send it again';
  return messageId === undefined
    ? 'it may still take effect; look at the status of the run before you repeat it'
    : `it may still arrive; sent again with id "${visible(messageId)}" it is the same message`;
}

function reasonOf(error: unknown, id: string): string {
  // The run's own message is in the cause.
  if (error instanceof WorkflowUpdateFailedError) return error.cause?.message ?? error.message;
  if (
    error instanceof WorkflowExecutionAlreadyStartedError ||
    error instanceof WorkflowNotFoundError
  )
    return `run ${visible(id)} has ended`;
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return isGrpcServiceError(cause) ? `${error.message}: ${cause.details}` : error.message;
}
