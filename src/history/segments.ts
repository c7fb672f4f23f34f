import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { GRPC, grpcCode } from '../temporal/grpc.js';
import { decodeHistory, fetchHistory, readHistoryPage } from '../temporal/server-answers.js';
import type { Archive } from '../storage/archive.js';
import { readArchivedSegment } from './archived-run.js';
import { decodeEvent } from './decode-event.js';
import type { History, HistoryEvent } from './history-event.js';
import { project, type Projection } from './projection.js';
import type { EventOf } from './projection.js';

/** An earlier segment of a run. */
export interface Segment {
  readonly history: History;
  /** The decoded events of `history`. */
  readonly events: readonly HistoryEvent[];
  readonly view: Projection;
  /** Run id of the previous segment; empty in the first one. */
  readonly previousRunId: string;
}

/** The server calls an id that cannot exist an invalid argument. */
const NOT_FOUND: readonly (number | null)[] = [GRPC.notFound, GRPC.invalidArgument];

/** Identifies a segment, and the archive to read if the server has deleted it. */
export interface SegmentPlace {
  readonly id: string;
  readonly runId: string;
  readonly archive?: Archive | undefined;
}

/**
 * Reads a whole segment; null if neither the server nor the archive keeps it. Rejects with an
 * `ArchiveError` if the archive is needed and cannot be read.
 */
export async function readSegment(client: Client, place: SegmentPlace): Promise<Segment | null> {
  const history = await readSegmentHistory(client, place);
  if (history === null) return null;
  const events = (history.events ?? []).map(decodeEvent);
  return { history, events, view: project(events), previousRunId: previousRunId(events) };
}

async function readSegmentHistory(
  client: Client,
  { id, runId, archive }: SegmentPlace,
): Promise<History | null> {
  try {
    return await fetchHistory(client, id, runId);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    if (archive === undefined) return null;
    const run = { namespace: client.options.namespace, id };
    const history = await readArchivedSegment(archive, run, runId);
    return history && (await decodeHistory(client, id, history));
  }
}

/**
 * Returns the run id of the previous segment, given the events of one; empty for the first segment.
 */
export function previousRunId([started]: readonly HistoryEvent[]): string {
  return started?.type === 'started' ? started.previousRunId : '';
}

/** Reads the first event of a segment; null if the server no longer keeps it. */
export async function readSegmentStart(
  client: Client,
  id: string,
  runId: string,
): Promise<EventOf<'started'> | null> {
  try {
    const { events } = await readHistoryPage(client, {
      execution: { workflowId: id, runId },
      maximumPageSize: 1,
    });
    const [event] = events.map(decodeEvent);
    return event?.type === 'started' ? event : null;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

/**
 * Returns the run id of the oldest segment that the server keeps. `runId`: that of any kept
 * segment.
 */
export async function oldestKeptSegment(
  client: Client,
  id: string,
  runId: string,
): Promise<string> {
  const first = (await readSegmentStart(client, id, runId))?.firstRunId ?? '';
  if (first !== '' && (await readSegmentStart(client, id, first)) !== null) return first;
  for (let kept = runId; ;) {
    const previous = (await readSegmentStart(client, id, kept))?.previousRunId ?? '';
    if (previous === '' || (await readSegmentStart(client, id, previous)) === null) return kept;
    kept = previous;
  }
}

/** Whether the error means that the server has no such segment. */
export function isNotFound(error: unknown): boolean {
  if (error instanceof WorkflowNotFoundError) return true;
  return NOT_FOUND.includes(grpcCode(error));
}
