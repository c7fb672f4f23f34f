import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { UnreadableError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import type { Archive } from '../storage/blob-store.js';
import { GRPC, grpcCode } from '../temporal/grpc.js';
import {
  decodeHistory,
  fetchHistory,
  listWorkflows,
  readHistoryPage,
} from '../temporal/server-answers.js';
import { decodeEvents } from './decode-event.js';
import type { History, HistoryEvent } from './history-event.js';
import {
  type EventOf,
  type Projection,
  project,
  waitedByNode,
  writtenByNewer,
} from './projection.js';
import { type RunReading, readArchivedSegment } from './read-run.js';

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
interface SegmentPlace {
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
  const events = decodeEvents(place.id, history.events);
  return { history, events, view: project(events), previousRunId: previousRunId(events) };
}

/**
 * Reads the events of all segments of a run, oldest first, up to one that neither the server nor the
 * archive keeps: `lost` is its run id, or null. Rejects with an `UnreadableError` if a newer version of
 * perdure wrote one of them.
 */
export async function readSegments(
  { client, archive }: { readonly client: Client; readonly archive: Archive },
  { id, events }: Pick<RunReading, 'id' | 'events'>,
): Promise<{
  readonly segments: readonly (readonly HistoryEvent[])[];
  readonly lost: string | null;
}> {
  assertReadable(id, events);
  const segments = [events];
  for (let runId = previousRunId(events); runId !== '';) {
    const segment = await readSegment(client, { id, runId, archive });
    if (segment === null) return { segments, lost: runId };
    assertReadable(id, segment.events);
    segments.unshift(segment.events);
    runId = segment.previousRunId;
  }
  return { segments, lost: null };
}

/**
 * Returns how long a run waited for people in the ended visits of each node of its graph, in ms, over all
 * segments that are kept. Rejects with an `ArchiveError` if the archive is needed and cannot be read.
 */
export async function readWaited(
  source: { readonly client: Client; readonly archive: Archive },
  run: Pick<RunReading, 'id' | 'events' | 'view'>,
): Promise<ReadonlyMap<string, number>> {
  const { state, visits } = run.view;
  const isWhole = state === null || state.segments === 1 || state.graph === undefined;
  const segments = isWhole
    ? [visits]
    : (await readSegments(source, run)).segments.map((events) => project(events).visits);
  return waitedByNode(segments, state?.graph?.at ?? null);
}

function assertReadable(id: string, events: readonly HistoryEvent[]): void {
  const newer = writtenByNewer(events);
  if (newer !== null) throw new UnreadableError(`run "${visible(id)}": ${newer}`);
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
    const [event] = decodeEvents(id, events);
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

/** A run, or a workflow that hands out a budget or a rate, with the history of its newest segment. */
interface MatchingRun {
  readonly id: string;
  /** The workflow type. */
  readonly type: string;
  readonly runId: string;
  readonly history: History;
}

/** Counts of matches that were skipped while the runs were read. */
export interface SkipCounts {
  /** Workflows that are not perdure's, by type. */
  readonly others: Map<string, number>;
  /** Segments that were continued; the run matches by its newest segment. */
  earlier: number;
  /** Runs that were deleted, or whose retention ended, after the server listed them. */
  gone: number;
  /** The ids of runs whose histories are encoded, and the client lacks the codec or the key. */
  readonly unreadable: string[];
  /** More runs match than were requested. */
  more: boolean;
}

export function createSkipCounts(): SkipCounts {
  return { others: new Map(), earlier: 0, gone: 0, unreadable: [], more: false };
}

/** The workflows that all runs share, whose ids begin with their type: no run may have such an id. */
export const SHARED_TYPES = ['budget', 'rate'] as const;

/** Returns whether a workflow hands out a budget or a rate. */
export function isShared({ id, type }: { readonly id: string; readonly type: string }): boolean {
  return SHARED_TYPES.some((shared) => type === shared && id.startsWith(`${shared}:`));
}

/**
 * Yields the runs of agents that a visibility query finds, and the workflows that they share, at most
 * `limit`, each with its history. Each history is fetched on demand. Rejects if the server refuses the query.
 */
export async function* matchingRuns(
  client: Client,
  { query, limit }: { readonly query: string; readonly limit: number },
  skipped: SkipCounts,
): AsyncGenerator<MatchingRun, void, undefined> {
  let found = 0;
  for await (const { info } of listWorkflows(client, query)) {
    const { type, status, workflowId: id, runId } = info;
    if (type !== 'agent' && !isShared({ id, type })) {
      skipped.others.set(type, (skipped.others.get(type) ?? 0) + 1);
    } else if (status.name === 'CONTINUED_AS_NEW') {
      skipped.earlier += 1;
    } else if (found === limit) {
      skipped.more = true;
      return;
    } else {
      const history = await historyOf(client, { id, runId });
      if (history === 'unreadable') skipped.unreadable.push(id);
      else if (history === null) skipped.gone += 1;
      else {
        found += 1;
        yield { id, type, runId, history };
      }
    }
  }
}

async function historyOf(
  client: Client,
  { id, runId }: { readonly id: string; readonly runId: string },
): Promise<History | 'unreadable' | null> {
  try {
    return await fetchHistory(client, id, runId);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    if (UnreadableError.isInstance(error)) return 'unreadable';
    throw error;
  }
}
