import {
  WorkflowNotFoundError,
  type Client,
  type WorkflowExecutionDescription,
} from '@temporalio/client';
import { isObject, textField } from '../core/json.js';
import { visible } from '../core/text/summaries.js';
import { decodeEvent, type History, type HistoryEvent } from './decode-event.js';
import { project, type Projection } from './projection.js';
import { NoRunError } from '../core/errors.js';

/** A run as the server knows it at this moment. */
export interface RunReading {
  readonly id: string;
  /** Run id of the newest segment. */
  readonly runId: string;
  readonly taskQueue: string;
  /** The agent's name from the input; empty if the input names none. */
  readonly agent: string;
  readonly description: WorkflowExecutionDescription;
  readonly history: History;
  /** The decoded events of `history`. */
  readonly events: readonly HistoryEvent[];
  readonly view: Projection;
  /** The reason given for its termination; empty if it was not terminated or no reason was given. */
  readonly terminatedWhy: string;
}

/** Describes a run without reading its history. Rejects with a `NoRunError`. */
export async function describeRun(
  client: Client,
  id: string,
): Promise<WorkflowExecutionDescription> {
  const description = await client.workflow.getHandle(id).describe().catch(rethrowNotFound(id));
  if (description.type === 'agent') return description;
  throw new NoRunError(
    `"${visible(id)}" is a workflow of type "${visible(description.type)}", not a run of perdure`,
  );
}

/** Reads the description of a run and the history of its newest segment. Rejects with a `NoRunError`. */
export async function readRun(client: Client, id: string): Promise<RunReading> {
  const description = await describeRun(client, id);
  const { runId, taskQueue } = description;
  const history = await client.workflow
    .getHandle(id, runId)
    .fetchHistory()
    .catch(rethrowNotFound(id));
  const raw = history.events ?? [];
  const events = raw.map(decodeEvent);
  const last = raw.at(-1)?.workflowExecutionTerminatedEventAttributes;
  return {
    id,
    runId,
    taskQueue,
    agent: agentName(events),
    description,
    history,
    events,
    view: project(events),
    terminatedWhy: last?.reason ?? '',
  };
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
