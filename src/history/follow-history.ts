import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { FinishedTurn } from '../core/state/state.js';
import { inTurn } from '../core/state/turn.js';
import { GRPC, grpcCode } from '../temporal/grpc.js';
import { type HistoryPage, readHistoryPage } from '../temporal/server-answers.js';
import { decodeEvents } from './decode-event.js';
import type { DurableStep } from './durable-steps.js';
import { createStepEmitter } from './emit-steps.js';
import { type HistoryEvent, isPermanent } from './history-event.js';
import type { Projection } from './projection.js';

/** The segment of a run that is followed. */
export interface FollowedSegment {
  readonly id: string;
  /** Run id of the segment; of the first one if all are followed. */
  readonly runId: string;
  /** Stops following. The run is not affected. */
  readonly signal: AbortSignal;
}

/** Milliseconds within which a restarting server must be back. After that, following fails. */
const SILENCE_MS = 60_000;
const PAUSE_MS = 1_000;
/**
 * Milliseconds after which the connection is considered dead. The server answers a poll within 20
 * s, even without new events.
 */
const POLL_MS = 40_000;
/** Another attempt cannot change these answers. */
const FINAL: readonly number[] = [
  GRPC.invalidArgument,
  GRPC.notFound,
  GRPC.permissionDenied,
  GRPC.unimplemented,
  GRPC.unauthenticated,
];
/** Temporal's number of the history filter `CLOSE_EVENT`. */
const CLOSE_EVENT = 2;

/**
 * Yields the events of one segment, page by page, and waits for future ones by long polling, which
 * needs no worker. Ends with the segment, or when the signal aborts. Rejects if the server stays
 * unreachable. `only: 'end'`: yields only the last event, regardless of the history's length.
 *
 * A workflow task at the end of a page may be yielded again, or other events may be yielded under
 * its ids. The later ones are correct.
 */
export async function* segmentEvents(
  client: Client,
  segment: FollowedSegment,
  { only }: { readonly only?: 'end' } = {},
): AsyncGenerator<readonly HistoryEvent[], void, undefined> {
  let token: Uint8Array | undefined;
  let answeredAt = performance.now();
  let seen = 0;
  for (;;) {
    // The SDK does not notice a signal that has aborted before the call, which would poll to its end.
    if (segment.signal.aborted) return;
    let page: HistoryPage;
    try {
      page = await nextPage(client, segment, { token, only });
    } catch (error) {
      if (segment.signal.aborted) return;
      if (!isTransient(error) || performance.now() - answeredAt > SILENCE_MS) throw error;
      await pause(PAUSE_MS, undefined, { signal: segment.signal }).catch(() => undefined);
      // Starts again from the beginning: a restarted server may not know its old tokens.
      token = undefined;
      continue;
    }
    answeredAt = performance.now();
    const fresh = decodeEvents(segment.id, page.events).filter((event) => event.id > seen);
    seen = fresh.findLast(isPermanent)?.id ?? seen;
    if (fresh.length > 0) yield fresh;
    if (page.token === undefined) return;
    token = page.token;
  }
}

/**
 * Returns the run id of the next segment, given the last event of one; null if the run has ended.
 */
export function nextRunId(last: HistoryEvent | undefined | null): string | null {
  if (last?.type !== 'ended' || last.how !== 'continued') return null;
  return typeof last.result === 'string' ? last.result : null;
}

async function nextPage(
  client: Client,
  { id, runId, signal }: FollowedSegment,
  { token, only }: { token: Uint8Array | undefined; only: 'end' | undefined },
): Promise<HistoryPage> {
  return await callWithSignal(client, signal, () =>
    readHistoryPage(client, {
      execution: { workflowId: id, runId },
      waitNewEvent: true,
      ...(only === 'end' && { historyEventFilterType: CLOSE_EVENT }),
      ...(token && { nextPageToken: token }),
    }),
  );
}

/** The SDK never removes its listener from the signal, so each call gets its own signal. */
async function callWithSignal<T>(
  { connection }: Client,
  signal: AbortSignal,
  call: () => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const abort = (): void => own.abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await connection.withAbortSignal(own.signal, () =>
      connection.withDeadline(Date.now() + POLL_MS, call),
    );
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Whether another attempt may succeed: an unreachable server may recover, but a missing run does
 * not.
 */
function isTransient(error: unknown): boolean {
  const code = grpcCode(error);
  return code !== null && !FINAL.includes(code);
}

/** Receives the steps of a followed run. */
interface StepListener {
  /** Called before a run is yielded, with the steps that its newest events add. */
  readonly onSteps?: (steps: readonly DurableStep[]) => void;
  /** Steps of the first segment up to this event are not new; default: 0. */
  readonly after?: number;
}

/** A run as of its newest event. */
export interface FollowedRun {
  /** Run id of the segment that the view shows. */
  readonly runId: string;
  readonly view: Projection;
}

/**
 * Follows a run through its segments by long polling its history, which needs no worker. Ends with
 * the run, or when the signal aborts. Rejects if the server stays unreachable.
 */
export async function* followSegments(
  client: Client,
  { id, runId: first, signal }: FollowedSegment,
  { onSteps, after = 0 }: StepListener = {},
): AsyncGenerator<FollowedRun, void, undefined> {
  for (let runId: string | null = first; runId !== null;) {
    const emit = createStepEmitter(runId);
    const known = runId === first ? after : 0;
    for await (const events of segmentEvents(client, { id, runId, signal })) {
      const steps = events.flatMap((event) => {
        const added = emit(event);
        return event.id > known ? added : [];
      });
      onSteps?.(steps);
      yield { runId, view: emit.view() };
    }
    if (signal.aborted) return;
    runId = nextRunId(emit.view().ended);
  }
}

/** The end of following: that of the run, or that of one turn. */
export type FollowTarget = 'end' | { readonly turn: number };

export type Reached =
  | { readonly type: 'run-ended' }
  | { readonly type: 'turn-ended'; readonly ended: FinishedTurn }
  /** The turn ended so long ago that the run no longer has its outcome. */
  | { readonly type: 'forgotten'; readonly turn: number };

/** Returns how a run has reached the target; null while it has not. */
export function reached(view: Projection, target: FollowTarget): Reached | null {
  const turnEnd = target === 'end' ? null : endOfTurn(view, target.turn);
  if (turnEnd !== null) return turnEnd;
  // A run that ends before a turn begins also ends that turn.
  return view.ended === null || view.ended.how === 'continued' ? null : { type: 'run-ended' };
}

function endOfTurn({ turns, state }: Projection, turn: number): Reached | null {
  const ended = [...turns, ...(state?.recent ?? [])].find((one) => one.turn === turn);
  if (ended !== undefined) return { type: 'turn-ended', ended };
  return (state?.turn.number ?? 0) > turn ? { type: 'forgotten', turn } : null;
}

/** Whether a run ends after the messages that it has accepted, because it was closed or canceled. */
export function isEnding({ state }: Projection): boolean {
  return state !== null && state.ending !== null;
}

/**
 * Returns the current target to follow in a run: the current turn, else the next one, else the end
 * of a run that is ending. Returns null for an open run that waits for a message.
 */
export function nextTarget(view: Projection): FollowTarget | null {
  const { state, input, cancelRequested } = view;
  if (state === null) return input?.open === true ? { turn: 1 } : 'end';
  if (!state.open) return 'end';
  if (inTurn(state)) return { turn: state.turn.number };
  if (cancelRequested || state.ending === 'cancelled') return 'end';
  const [next] = state.inbox.waiting;
  if (next !== undefined) return { turn: next.turn };
  return state.ending === null ? null : 'end';
}
