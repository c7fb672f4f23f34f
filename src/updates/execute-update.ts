import { setTimeout as pause } from 'node:timers/promises';
import {
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  type Client,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { visible } from '../core/text/summaries.js';
import { findTaskQueue, checkForWorker } from './find-worker.js';
import { NotDeliveredError, RefusedError, type WorkerSeen } from '../core/errors.js';

/** How long something that is said to a run is tried. */
export interface UpdateOptions {
  /** Milliseconds until it is given up; default 60,000: two workers may have to fail before a third answers. */
  readonly withinMs?: number;
  /** Ends the waiting, with a `NotDeliveredError`: what was sent may still arrive. */
  readonly signal?: AbortSignal;
}

/** What is said, and to whom. */
export interface UpdateTarget {
  /** Of the run. */
  readonly id: string;
  /** Of the run's workers, for a run that may not exist yet. */
  readonly taskQueue?: string;
  /** Where it is a message. */
  readonly messageId?: string;
}

const WITHIN_MS = 60_000;
/** For each try. A worker that froze costs a try about as long as the server takes to notice. */
const TRY_MS = 10_000;
const PAUSE_MS = 100;
/** A try in less time would only hide why the ones before it failed. */
const SHORTEST_TRY_MS = 1_000;
/** Codes of gRPC: deadline exceeded and unavailable; what was sent may have been taken. */
const SILENT: readonly number[] = [4, 14];
/** Codes of gRPC: resource exhausted, failed precondition, aborted; nothing was taken. */
const PASSING: readonly number[] = [8, 9, 10];
/** The server's own words for updates that a segment left behind when it ended. */
const LEFT_BEHIND = ['AcceptedUpdateCompletedWorkflow', 'UnprocessedUpdate'];

/**
 * What a failed try says of its effect: `refused`, it has none and never will; `not_delivered`, it has none;
 * `unknown`, it may have one.
 */
type Delivery = 'refused' | 'not_delivered' | 'unknown';

/** What a try that failed says: whether it may have had an effect, and whether another one may help. */
interface Fate {
  readonly delivery: Delivery;
  readonly again: boolean;
  /** There is no such run any more: an earlier try may have reached it while it lived. */
  readonly isOver?: boolean;
}

/**
 * Makes an update and waits for its answer, again and again until the deadline: while the run goes on in
 * a new segment, while it has no room, and while no worker answers. So `update` has to be one that has
 * the same effect when it is taken twice. Rejects with a
 * `RefusedError` or a `NotDeliveredError`.
 */
export async function executeUpdate<T>(
  client: Client,
  told: UpdateTarget,
  update: () => Promise<T>,
  { withinMs = WITHIN_MS, signal }: UpdateOptions = {},
): Promise<T> {
  const giveUpAt = Date.now() + withinMs;
  let uncertain = false;
  for (;;) {
    try {
      signal?.throwIfAborted();
      return await oneTry(client, update, {
        until: Math.min(Date.now() + TRY_MS, giveUpAt),
        signal,
      });
    } catch (error) {
      const fate = await fateOf(client, told, error);
      uncertain ||= fate.delivery === 'unknown';
      const isLast = Date.now() + PAUSE_MS + SHORTEST_TRY_MS >= giveUpAt;
      if (signal?.aborted || !fate.again || isLast) {
        const { isOver: hasEnded = false, delivery: last } = fate;
        // Of all refusals, only the run's own word speaks of the earlier tries as well.
        const delivery = uncertain && (hasEnded || last === 'not_delivered') ? 'unknown' : last;
        throw await failureOf(client, told, { error, delivery, hasEnded, withinMs, signal });
      }
    }
    await pause(PAUSE_MS);
  }
}

/** The SDK leaves its listener on the signal, so each try has one of its own. */
async function oneTry<T>(
  client: Client,
  update: () => Promise<T>,
  { until, signal }: { readonly until: number; readonly signal: AbortSignal | undefined },
): Promise<T> {
  const own = new AbortController();
  const abort = (): void => own.abort();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return await client.withAbortSignal(own.signal, () => client.withDeadline(until, update));
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

async function fateOf(client: Client, { id }: UpdateTarget, error: unknown): Promise<Fate> {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) {
    return { delivery: 'unknown', again: true };
  }
  if (error instanceof WorkflowUpdateFailedError) {
    const { cause } = error;
    const left = cause instanceof ApplicationFailure && LEFT_BEHIND.includes(cause.type ?? '');
    return { delivery: left ? 'not_delivered' : 'refused', again: left };
  }
  if (error instanceof WorkflowExecutionAlreadyStartedError) {
    return { delivery: 'refused', again: false, isOver: true };
  }
  if (error instanceof WorkflowNotFoundError) {
    // A segment that has just been left is not found; the run itself may live on.
    const again = await lives(client, id);
    return { delivery: again ? 'not_delivered' : 'refused', again, isOver: !again };
  }
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const code: number | null = isGrpcServiceError(cause) ? cause.code : null;
  if (code !== null && SILENT.includes(code)) return { delivery: 'unknown', again: true };
  return { delivery: 'not_delivered', again: code !== null && PASSING.includes(code) };
}

/** False only where the server says so: one that is away may have said nothing of a run that lives. */
async function lives(client: Client, id: string): Promise<boolean> {
  try {
    const { status } = await client.workflow.getHandle(id).describe();
    return status.name === 'RUNNING' || status.name === 'CONTINUED_AS_NEW';
  } catch (error) {
    return !(error instanceof WorkflowNotFoundError);
  }
}

async function failureOf(
  client: Client,
  told: UpdateTarget,
  failed: {
    readonly error: unknown;
    readonly delivery: Delivery;
    readonly hasEnded: boolean;
    readonly withinMs: number;
    readonly signal: AbortSignal | undefined;
  },
): Promise<RefusedError | NotDeliveredError> {
  const { error, delivery, withinMs, signal } = failed;
  const { id, messageId } = told;
  const known = { mayArrive: delivery === 'unknown', cause: error, messageId };
  const advice =
    failed.hasEnded && delivery === 'unknown'
      ? 'it may have taken it before; look at its transcript before you send it elsewhere'
      : adviceFor(delivery, messageId);
  if (delivery === 'refused') return new RefusedError(reasonOf(error, id), { cause: error });
  if (signal?.aborted) {
    return new NotDeliveredError(`the wait for an answer was aborted; ${advice}`, known);
  }
  if (!(error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)) {
    return new NotDeliveredError(`${reasonOf(error, id)}; ${advice}`, known);
  }
  const queue = await findTaskQueue(client, told);
  const worker = queue === null ? null : await checkForWorker(client, queue);
  const seconds = Math.round(withinMs / 100) / 10;
  const why = `no answer within ${seconds} s${whyOf(worker, queue ?? '')}`;
  return new NotDeliveredError(`${why}; ${advice}`, { ...known, worker });
}

function whyOf(worker: WorkerSeen, queue: string): string {
  if (worker === null) return '';
  return worker === 'missing'
    ? `: no worker polls task queue "${visible(queue)}"`
    : `: a worker polls task queue "${visible(queue)}" but does not answer; it may be frozen, cut off, or busy`;
}

/** What the caller may do; empty where the reason says enough. */
function adviceFor(delivery: Delivery, messageId: string | undefined): string {
  if (delivery === 'refused') return '';
  if (delivery === 'not_delivered') return 'it was not delivered, so it is safe to send it again';
  return messageId === undefined
    ? 'it may still take effect; look at the status of the run before you repeat it'
    : `it may still arrive; sent again with id "${visible(messageId)}" it is the same message`;
}

function reasonOf(error: unknown, id: string): string {
  // The run's own words are in the cause.
  if (error instanceof WorkflowUpdateFailedError) return error.cause?.message ?? error.message;
  if (error instanceof WorkflowExecutionAlreadyStartedError) return `run ${visible(id)} has ended`;
  if (error instanceof WorkflowNotFoundError) return `run ${visible(id)} has ended, or never was`;
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return isGrpcServiceError(cause) ? `${error.message}: ${cause.details}` : error.message;
}
