import {
  type Archive,
  ArchiveError,
  type ArchivedHistory,
  type ArchivedRun,
} from '../storage/archive.js';
import { isObject, parseJson } from '../core/json.js';
import { eventTime } from './decode-event.js';
import type { History } from './history-event.js';
import { historyFromJson, historyToJson } from './json.js';

/**
 * Stores the current history of a segment, as the server has it: what a codec has encoded stays
 * encoded. `firstRunId`: run id of the run's first segment.
 */
export async function archiveHistory(
  archive: Archive,
  run: ArchivedRun,
  segment: { readonly firstRunId: string; readonly runId: string; readonly history: History },
): Promise<void> {
  const { firstRunId, runId, history } = segment;
  const events = history.events ?? [];
  const last = events.at(-1);
  if (last === undefined) return;
  const at = Math.floor(eventTime(last));
  const entry = { firstRunId, runId, events: events.length, at };
  await archive.write(run, entry, historyToJson(history));
}

/** A segment as the archive has it: the payloads of its history may be encoded. */
export interface ArchivedSegment {
  readonly entry: ArchivedHistory;
  readonly history: History;
}

/**
 * Reads the newest segment of the run with this `firstRunId`, or else of the newest run with the
 * id. Returns null if the archive has none. Rejects with an `ArchiveError`.
 */
export async function newestArchived(
  archive: Archive,
  run: ArchivedRun,
  firstRunId?: string,
): Promise<ArchivedSegment | null> {
  return await readLongest(
    archive,
    run,
    (entry) => (firstRunId ?? entry.firstRunId) === entry.firstRunId,
  );
}

/** Reads a segment; null if the archive does not have it. Rejects with an `ArchiveError`. */
export async function readArchivedSegment(
  archive: Archive,
  run: ArchivedRun,
  runId: string,
): Promise<History | null> {
  const found = await readLongest(archive, run, (entry) => entry.runId === runId);
  return found?.history ?? null;
}

/**
 * Reads the newest matching history. A segment that was archived twice is longer the second time.
 */
async function readLongest(
  archive: Archive,
  run: ArchivedRun,
  matches: (entry: ArchivedHistory) => boolean,
): Promise<ArchivedSegment | null> {
  const entries = (await archive.list(run))
    .filter(matches)
    .toSorted((one, other) => other.at - one.at || other.events - one.events);
  const [newest] = entries;
  if (newest === undefined) return null;
  // An earlier copy of the same segment is better than none.
  for (const entry of entries.filter(({ runId }) => runId === newest.runId)) {
    const history = parseHistory(await archive.read(run, entry), entry);
    if (history !== null) return { entry, history };
  }
  throw new ArchiveError(
    `the archived history of run ${JSON.stringify(run.id)} is damaged; restore it from a backup`,
    { kind: 'unreadable' },
  );
}

/** Returns the history of an entry; null if it is damaged. */
function parseHistory(
  json: string,
  { events: count, firstRunId }: ArchivedHistory,
): History | null {
  const value = parseJson(json);
  const events: unknown = isObject(value) ? value['events'] : undefined;
  if (!Array.isArray(events) || events.length !== count) return null;
  try {
    const history = historyFromJson({ events });
    const read = history.events ?? [];
    const started = read[0]?.workflowExecutionStartedEventAttributes;
    const isWhole = read.every(({ eventId }, index) => Number(eventId) === index + 1);
    return isWhole && started?.firstExecutionRunId === firstRunId ? history : null;
  } catch {
    return null;
  }
}
