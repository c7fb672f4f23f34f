import { setTimeout as pause } from 'node:timers/promises';
import { isGrpcServiceError, type Client } from '@temporalio/client';
import { decodeEvent, type RawEvent, type HistoryEvent } from './decode-event.js';

/** What is followed: one segment of a run. */
export interface FollowOptions {
  readonly id: string;
  /** The segment; the first one to begin with where all are followed. */
  readonly runId: string;
  /** Ends the following; the run does not notice. */
  readonly signal: AbortSignal;
}

/** A server that restarts is back within this time; after it, it is taken for gone. */
const SILENCE_MS = 60_000;
const PAUSE_MS = 1_000;
/** The server answers a poll after 20 s at the latest, news or not; after this the connection is dead. */
const POLL_MS = 40_000;
/** Codes of gRPC: invalid argument, not found, permission denied, unimplemented, unauthenticated. */
const FINAL: readonly number[] = [3, 5, 7, 12, 16];
/** As Temporal's API numbers the filters of a history. */
const CLOSE_EVENT = 2;

/**
 * The facts of one segment, page by page, waiting for those to come by the history's long poll, which
 * needs no worker and disturbs nobody. Ends with the segment, or when the signal aborts; rejects
 * when the server stays away. `only: 'end'`: nothing but the last fact, however long the history.
 */
export async function* segmentEvents(
  client: Client,
  segment: FollowOptions,
  { only }: { readonly only?: 'end' } = {},
): AsyncGenerator<readonly HistoryEvent[], void, undefined> {
  let token: Uint8Array | undefined;
  let heardAt = Date.now();
  let seen = 0;
  for (;;) {
    let page: Page;
    try {
      page = await nextPage(client, segment, { token, only });
    } catch (error) {
      if (segment.signal.aborted) return;
      if (!mayPass(error) || Date.now() - heardAt > SILENCE_MS) throw error;
      await pause(PAUSE_MS, undefined, { signal: segment.signal }).catch(() => undefined);
      // From the start again: a server that was restarted need not know its old tokens.
      token = undefined;
      continue;
    }
    heardAt = Date.now();
    const fresh = page.events.map(decodeEvent).filter((fact) => fact.id > seen);
    seen = fresh.at(-1)?.id ?? seen;
    if (fresh.length > 0) yield fresh;
    if (page.token === undefined || segment.signal.aborted) return;
    token = page.token;
  }
}

/** The segment that follows one with this last fact; null where the run has ended. */
export function nextRunId(fact: HistoryEvent | undefined | null): string | null {
  if (fact?.type !== 'ended' || fact.how !== 'continued') return null;
  return typeof fact.result === 'string' ? fact.result : null;
}

interface Page {
  readonly events: readonly RawEvent[];
  /** Undefined after the last page of a segment that has ended. */
  readonly token: Uint8Array | undefined;
}

async function nextPage(
  client: Client,
  { id, runId, signal }: FollowOptions,
  { token, only }: { token: Uint8Array | undefined; only: 'end' | undefined },
): Promise<Page> {
  const page = await cancelledBy(client, signal, () =>
    client.workflowService.getWorkflowExecutionHistory({
      namespace: client.options.namespace,
      execution: { workflowId: id, runId },
      waitNewEvent: true,
      ...(only === 'end' && { historyEventFilterType: CLOSE_EVENT }),
      ...(token && { nextPageToken: token }),
    }),
  );
  const { nextPageToken } = page;
  return {
    events: page.history?.events ?? [],
    token: nextPageToken && nextPageToken.length > 0 ? nextPageToken : undefined,
  };
}

/** The SDK leaves its listener on the signal, so each call has one of its own. */
async function cancelledBy<T>(
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

/** A run that is not there does not come back; a server that is away may. */
function mayPass(error: unknown): boolean {
  return isGrpcServiceError(error) && !FINAL.includes(error.code);
}
