import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { NoRunError, UnreadableError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { isObject, parseJson, textField } from '../core/text/json.js';
import {
  type Archive,
  ArchiveError,
  type ArchivedHistory,
  type ArchivedRun,
} from '../storage/blob-store.js';
import { queryTerm } from '../temporal/query-term.js';
import {
  type Description,
  decodeHistory,
  describeWorkflow,
  fetchHistory,
  listWorkflows,
} from '../temporal/server-answers.js';
import { decodeEvents, eventTime } from './decode-event.js';
import {
  type History,
  type HistoryEvent,
  historyFromJson,
  historyToJson,
} from './history-event.js';
import { type Projection, project } from './projection.js';

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
interface ArchivedSegment {
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
    const list = history.events ?? [];
    const started = list[0]?.workflowExecutionStartedEventAttributes;
    const isWhole = list.every(({ eventId }, index) => Number(eventId) === index + 1);
    return isWhole && started?.firstExecutionRunId === firstRunId ? history : null;
  } catch {
    return null;
  }
}

/** The current state of a run on the server or in the archive. */
export interface RunReading {
  readonly id: string;
  /** Run id of the newest segment. */
  readonly runId: string;
  readonly taskQueue: string;
  /** The agent's name from the input; empty if the input names none. */
  readonly agent: string;
  /** Null if the run was read from the archive, because the server has deleted it. */
  readonly description: Description | null;
  readonly history: History;
  /** The decoded events of `history`. */
  readonly events: readonly HistoryEvent[];
  readonly view: Projection;
  /**
   * The reason given for its termination; empty if it was not terminated or no reason was given.
   */
  readonly terminatedWhy: string;
}

/**
 * Describes the newest run with an id, or that segment, without reading its history. Rejects with a
 * `NoRunError`.
 */
export async function describeRun(
  client: Client,
  id: string,
  runId?: string,
): Promise<Description> {
  const description = await describeWorkflow(client, id, runId).catch(rethrowNotFound(id));
  if (description.type === 'agent') return description;
  throw new NoRunError(
    `"${visible(id)}" is a workflow of type "${visible(description.type)}", not a run of perdure`,
  );
}

interface ReadRunOptions {
  /** The archive for a run that the server has deleted; absent: only the server is queried. */
  readonly archive?: Archive | undefined;
  /**
   * Selects the run with this run id of its first segment, because several runs may have the same
   * id.
   */
  readonly firstRunId?: string | undefined;
  /** Selects a run by the run id of its newest segment, in place of the newest run with the id. */
  readonly segment?: string | undefined;
}

/**
 * Reads the description of a run and the history of its newest segment, or the archived data of a
 * run that the server has deleted. Rejects with a `NoRunError`, and with an `ArchiveError` if the
 * archive is needed and cannot be read.
 */
export async function readRun(
  client: Client,
  id: string,
  { archive, firstRunId, segment }: ReadRunOptions = {},
): Promise<RunReading> {
  try {
    const run = await readLiveRun(client, id, segment);
    if (firstRunId === undefined || firstRunIdOf(run) === firstRunId) return run;
    return await readLiveRun(client, id, await newestSegment(client, id, firstRunId));
  } catch (error) {
    if (archive === undefined || !NoRunError.isInstance(error)) throw error;
    const { namespace } = client.options;
    const found = await newestArchived(archive, { namespace, id }, firstRunId);
    if (found === null) throw error;
    return archivedReading(id, {
      ...found,
      history: await decodeHistory(client, id, found.history),
    });
  }
}

/**
 * Reads all runs that have used an id, one after the other, oldest first: those of the server, and
 * those that only the archive has. Rejects with a `NoRunError` if there is none, and with an
 * `ArchiveError`.
 */
export async function readRunsWithId(
  client: Client,
  id: string,
  archive: Archive,
): Promise<readonly RunReading[]> {
  const found = new Map<string, RunReading>();
  const add = async (options: ReadRunOptions): Promise<NoRunError | null> => {
    try {
      const run = await readRun(client, id, options);
      const first = firstRunIdOf(run);
      if (!found.has(first)) found.set(first, run);
      return null;
    } catch (error) {
      if (NoRunError.isInstance(error)) return error;
      throw error;
    }
  };
  const problem = await add({ archive });
  // The newest segment of each run; one may continue in another one meanwhile.
  const query = `WorkflowType = 'agent' AND ExecutionStatus != 'ContinuedAsNew' AND ${queryTerm('WorkflowId', id)}`;
  const [newest] = found.values();
  for await (const { info } of listWorkflows(client, query))
    if (info.runId !== newest?.runId) await add({ segment: info.runId });
  for (const { firstRunId } of await archive.list({ namespace: client.options.namespace, id }))
    if (!found.has(firstRunId)) await add({ archive, firstRunId });
  if (found.size === 0 && problem !== null) throw problem;
  const startedAt = ({ events }: RunReading): number => events[0]?.at ?? 0;
  // The server lists the newest first.
  const runs = [...found.values()].toReversed();
  return runs.toSorted((one, other) => startedAt(one) - startedAt(other));
}

/**
 * Returns the run id of the newest segment of an older run. Rejects with a `NoRunError` if it is
 * deleted.
 */
async function newestSegment(client: Client, id: string, firstRunId: string): Promise<string> {
  for (let runId = firstRunId; ;) {
    const history = await fetchHistory(client, id, runId).catch(rethrowNotFound(id));
    const next = history.events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes;
    if (!next?.newExecutionRunId) return runId;
    runId = next.newExecutionRunId;
  }
}

/** Returns the run id of the first segment of a run. */
function firstRunIdOf({ runId, events: [started] }: RunReading): string {
  return started?.type === 'started' ? started.firstRunId : runId;
}

async function readLiveRun(client: Client, id: string, segment?: string): Promise<RunReading> {
  const description = await describeRun(client, id, segment);
  const { runId, taskQueue } = description;
  const history = await fetchHistory(client, id, runId).catch(rethrowNotFound(id));
  const last = history.events?.at(-1)?.workflowExecutionTerminatedEventAttributes;
  return {
    ...read({ id, runId, taskQueue, history }),
    description,
    terminatedWhy: last?.reason ?? '',
  };
}

function archivedReading(id: string, { entry, history }: ArchivedSegment): RunReading {
  const [started] = history.events ?? [];
  const taskQueue = started?.workflowExecutionStartedEventAttributes?.taskQueue?.name ?? '';
  const { runId } = entry;
  return { ...read({ id, runId, taskQueue, history }), description: null, terminatedWhy: '' };
}

function read(
  reading: Pick<RunReading, 'id' | 'runId' | 'taskQueue' | 'history'>,
): Omit<RunReading, 'description' | 'terminatedWhy'> {
  const events = decodeEvents(reading.id, reading.history.events);
  return { ...reading, agent: agentName(events), events, view: project(events) };
}

/** Returns the agent that a run's first event names; empty if it names none. */
function agentName([started]: readonly HistoryEvent[]): string {
  if (started?.type !== 'started' || !isObject(started.input)) return '';
  return textField(started.input, 'agent');
}

function rethrowNotFound(id: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    throw new NoRunError(`there is no run "${visible(id)}"`, { cause: error });
  };
}

/**
 * Returns what the readers of a run say that the server has deleted, and that cannot be followed any more; null if
 * the archive does not have it either.
 */
export async function deletedRunMessage(
  archive: Archive,
  run: ArchivedRun,
): Promise<string | null> {
  const archived = await archive.list(run).catch(() => []);
  if (archived.length === 0) return null;
  return `the server has deleted run "${visible(run.id)}", which has ended; client.status, client.transcript, and client.result read it from the archive`;
}

/**
 * Returns a run, the run that it was forked from, and so on, back to the oldest one that is still stored and
 * can be decoded. Rejects if the server does not answer, and with an `ArchiveError`.
 */
export async function readLineage(
  client: Client,
  id: string,
  archive: Archive,
): Promise<readonly string[]> {
  const lineage: string[] = [];
  for (let run: string | undefined = id; run !== undefined && !lineage.includes(run);) {
    lineage.push(run);
    const reading: RunReading | null = await readRun(client, run, { archive }).catch(
      (error: unknown) => {
        if (NoRunError.isInstance(error) || UnreadableError.isInstance(error)) return null;
        throw error;
      },
    );
    run = reading?.view.state?.forkedFrom?.run;
  }
  return lineage;
}
