import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import {
  decodeHistory,
  describeWorkflow,
  fetchHistory,
  type Description,
} from '../temporal/server-answers.js';
import type { Archive } from '../storage/archive.js';
import { isObject, textField } from '../core/json.js';
import { visible } from '../core/text/summaries.js';
import { newestArchived, type ArchivedSegment } from './archived-run.js';
import { decodeEvent } from './decode-event.js';
import type { History, HistoryEvent } from './history-event.js';
import { project, type Projection } from './projection.js';
import { NoRunError } from '../core/errors.js';

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
}

/**
 * Reads the description of a run and the history of its newest segment, or the archived data of a
 * run that the server has deleted. Rejects with a `NoRunError`, and with an `ArchiveError` if the
 * archive is needed and cannot be read.
 */
export async function readRun(
  client: Client,
  id: string,
  { archive, firstRunId }: ReadRunOptions = {},
): Promise<RunReading> {
  try {
    const run = await readLiveRun(client, id);
    const [started] = run.events;
    const found = started?.type === 'started' ? started.firstRunId : run.runId;
    if (firstRunId === undefined || found === firstRunId) return run;
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
  const events = (reading.history.events ?? []).map(decodeEvent);
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
