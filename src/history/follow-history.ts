import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { GRPC, grpcCode } from '../temporal/grpc.js';
import { readHistoryPage, type HistoryPage } from '../temporal/server-answers.js';
import { decodeEvent } from './decode-event.js';
import { isPermanent, type HistoryEvent } from './history-event.js';

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
    const fresh = page.events.map(decodeEvent).filter((event) => event.id > seen);
    seen = fresh.findLast(isPermanent)?.id ?? seen;
    if (fresh.length > 0) yield fresh;
    if (page.token === undefined || segment.signal.aborted) return;
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
  if (signal.aborted) abort();
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
