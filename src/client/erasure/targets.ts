import { UnreadableError, NoRunError } from '../../core/errors.js';
import { visible } from '../../core/state/summaries.js';
import { isObject, textField } from '../../core/text/json.js';
import { decodeEvents } from '../../history/decode-event.js';
import type { HistoryEvent } from '../../history/history-event.js';
import { describeRun, readArchivedSegment } from '../../history/read-run.js';
import { isNotFound, previousRunId } from '../../history/segments.js';
import { ArchiveError } from '../../storage/blob-store.js';
import {
  type History,
  decodeHistory,
  describeWorkflow,
  fetchHistory,
  listWorkflows,
  payloadTexts,
} from '../../temporal/server-answers.js';
import { queryTerm } from '../run-row.js';
import { type ErasureSources, namesIn } from './references.js';

/** A closed run with all its segments. */
export interface ErasedRun {
  readonly id: string;
  /** The run ids of its segments, on the server or in the archive. */
  readonly segments: readonly string[];
}

/** What an erasure is to remove. */
interface Targets {
  readonly runs: readonly ErasedRun[];
  /** The names of the stored texts that the histories contain. */
  readonly names: ReadonlySet<string>;
}

/** Why nothing of a run is erased. */
export interface RefusedRun {
  readonly id: string;
  readonly why: string;
}

export const NO_SUCH_RUN = 'there is no such run, on the server or in the archive';
const REUSED =
  'its id was used for several runs; name the id to erase all of them, or give each run an id of its own';
export const NOT_ENDED = 'has not ended; close or cancel it first';

/** Thrown for a run that is not erased. */
class RefusedTarget extends Error {}

interface Wanted {
  /** The names of all stored texts. */
  readonly stored: ReadonlySet<string>;
  /** Whether a person has named the id, and not a filter found it. */
  readonly isNamed: boolean;
}

/** Finds a closed run with the runs of the agents that it has called, or why it cannot be erased. */
export async function findTargets(
  sources: ErasureSources,
  id: string,
  { stored, isNamed }: Wanted,
): Promise<Targets | RefusedRun> {
  const runs = new Map<string, ErasedRun>();
  const names = new Set<string>();
  try {
    const waiting = [id];
    let root: string | null = null;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      if (runs.has(next)) continue;
      const found = await gather(sources, next, id);
      if (found === null) continue;
      root ??= found.root;
      // A called run always has the root of its caller; another one only has the id.
      if (found.root !== root) continue;
      // An erasure removes an id as a whole, and a filter has matched only one of its runs.
      if (!isNamed && found.chains > 1) throw new RefusedTarget(REUSED);
      runs.set(next, { id: next, segments: [...found.segments] });
      for (const text of found.texts) for (const name of namesIn(text, stored)) names.add(name);
      waiting.push(...found.called);
    }
  } catch (error) {
    if (error instanceof RefusedTarget) return { id, why: error.message };
    throw error;
  }
  if (runs.size > 0) return { runs: [...runs.values()], names };
  return { id, why: NO_SUCH_RUN };
}

interface Gathered {
  readonly segments: ReadonlySet<string>;
  /** How many runs have used the id: a run that has continued in new segments is one. */
  readonly chains: number;
  /** The id of the topmost caller, or its own. */
  readonly root: string;
  readonly called: readonly string[];
  readonly texts: readonly string[];
}

/** Reads all segments of a run; null if nothing of it exists. `asked`: the run that was asked for. */
async function gather(
  sources: ErasureSources,
  id: string,
  asked: string,
): Promise<Gathered | null> {
  const { client, archive } = sources;
  const segments = new Set<string>();
  const newest = await closedRun(sources, id, asked);
  if (newest !== null) {
    segments.add(newest);
    for await (const { info } of listWorkflows(client, queryTerm('WorkflowId', id)))
      segments.add(info.runId);
  }
  const run = { namespace: client.options.namespace, id };
  for (const { runId } of await archive.list(run)) segments.add(runId);
  const called = new Set<string>();
  const texts: string[] = [];
  const chains = new Set<string>();
  let root = id;
  for (const runId of segments) {
    for (const history of await historiesOf(sources, id, runId)) {
      const events = decodeEvents(id, history.events);
      const previous = previousRunId(events);
      if (previous !== '') segments.add(previous);
      if (events[0]?.type === 'started') {
        ({ root } = events[0]);
        chains.add(events[0].firstRunId);
      }
      for (const one of calledIn(events)) called.add(one);
      texts.push(...(await payloadTexts(history)));
    }
  }
  if (segments.size === 0) return null;
  if (root !== id && id === asked) await assertEnded(sources, root);
  if (newest !== null && root === id) {
    const below = `${queryTerm('RootWorkflowId', id)} AND ${queryTerm('WorkflowId', id, '!=')}`;
    for await (const { info } of listWorkflows(client, below)) called.add(info.workflowId);
  }
  return { segments, chains: chains.size, root, called: [...called], texts };
}

/**
 * Returns the run id of the newest segment on the server; null if it has none. Throws if the run has
 * not ended, or is not a run of perdure.
 */
async function closedRun(
  { client }: ErasureSources,
  id: string,
  asked: string,
): Promise<string | null> {
  try {
    const { runId, closeTime } = await describeRun(client, id);
    if (closeTime !== undefined) return runId;
  } catch (error) {
    if (!NoRunError.isInstance(error)) throw error;
    if (isNotFound(error.cause)) return null;
    throw new RefusedTarget(error.message, { cause: error });
  }
  const what = id === asked ? 'it' : `run "${visible(id)}", which belongs to it,`;
  throw new RefusedTarget(`${what} ${NOT_ENDED}`);
}

/** Throws if the topmost caller of a run, which may be a workflow of another type, has not ended. */
async function assertEnded({ client }: ErasureSources, root: string): Promise<void> {
  try {
    const { type, closeTime } = await describeWorkflow(client, root);
    if (closeTime !== undefined) return;
    const what = type === 'agent' ? 'run' : 'workflow';
    throw new RefusedTarget(`${what} "${visible(root)}", which has called it, ${NOT_ENDED}`);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Returns a segment as the server and as the archive have it, decoded. */
async function historiesOf(
  { client, archive }: ErasureSources,
  id: string,
  runId: string,
): Promise<readonly History[]> {
  try {
    const live = await fetchHistory(client, id, runId).catch((error: unknown) => {
      if (isNotFound(error)) return null;
      throw error;
    });
    if (live !== null) return [live];
    const run = { namespace: client.options.namespace, id };
    const archived = await readArchivedSegment(archive, run, runId);
    return archived === null ? [] : [await decodeHistory(client, id, archived)];
  } catch (error) {
    if (!UnreadableError.isInstance(error) && !(error instanceof ArchiveError)) throw error;
    throw new RefusedTarget(error.message, { cause: error });
  }
}

/** Returns the ids of the runs that a history says the run has called. */
function calledIn(events: readonly HistoryEvent[]): readonly string[] {
  return events.flatMap((event) => {
    if (event.type === 'child-started') return [event.child];
    const isFollowed = event.type === 'scheduled' && event.activity === 'followRun';
    return isFollowed && isObject(event.input) ? [textField(event.input, 'run')] : [];
  });
}
