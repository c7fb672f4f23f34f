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

/** A run as the server knows it at this moment; no worker is asked. */
export interface RunReading {
  readonly id: string;
  /** Of the newest segment. */
  readonly runId: string;
  readonly taskQueue: string;
  /** As the input names it; empty where the input names none. */
  readonly agent: string;
  readonly description: WorkflowExecutionDescription;
  readonly history: History;
  readonly facts: readonly HistoryEvent[];
  readonly view: Projection;
  /** Why somebody terminated it; empty where nobody did, or said. */
  readonly terminatedWhy: string;
}

/** The description of a run. Rejects with a `NoRunError`. */
export async function describeRun(
  client: Client,
  id: string,
): Promise<WorkflowExecutionDescription> {
  const description = await client.workflow.getHandle(id).describe().catch(asNoRun(id));
  if (description.type === 'agent') return description;
  throw new NoRunError(
    `"${visible(id)}" is a workflow of type "${visible(description.type)}", no run of an agent of perdure`,
  );
}

/** Reads a run's description and its whole history. Rejects with a `NoRunError`. */
export async function readRun(client: Client, id: string): Promise<RunReading> {
  const description = await describeRun(client, id);
  const { runId, taskQueue } = description;
  const history = await client.workflow.getHandle(id, runId).fetchHistory().catch(asNoRun(id));
  const events = history.events ?? [];
  const facts = events.map(decodeEvent);
  const last = events.at(-1)?.workflowExecutionTerminatedEventAttributes;
  return {
    id,
    runId,
    taskQueue,
    agent: agentOf(facts),
    description,
    history,
    facts,
    view: project(facts),
    terminatedWhy: last?.reason ?? '',
  };
}

/** The agent that a run's first event asks for; empty where it names none. */
function agentOf([started]: readonly HistoryEvent[]): string {
  if (started?.type !== 'started' || !isObject(started.input)) return '';
  return textField(started.input, 'agent');
}

function asNoRun(id: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    throw new NoRunError(`there is no run "${visible(id)}"`, { cause: error });
  };
}
