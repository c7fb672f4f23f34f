import { isGrpcServiceError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import { decodeEvent, type HistoryEvent } from './decode-event.js';
import { project, type Projection } from './projection.js';
import type { EventOf } from './projection.js';

/** An earlier segment of a run. */
export interface Segment {
  readonly view: Projection;
  /** Run id of the previous segment; empty in the first one. */
  readonly previousRunId: string;
}

/** gRPC codes not found and invalid argument, which the server uses for an id that cannot exist. */
const NOT_FOUND: readonly (number | null)[] = [5, 3];

/** Reads a whole segment; null if the server no longer keeps it. */
export async function readSegment(
  client: Client,
  id: string,
  runId: string,
): Promise<Segment | null> {
  try {
    const { events } = await client.workflow.getHandle(id, runId).fetchHistory();
    const decoded = (events ?? []).map(decodeEvent);
    return { view: project(decoded), previousRunId: previousRunId(decoded) };
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

/** Returns the run id of the previous segment, given the events of one; empty for the first segment. */
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
    const { history } = await client.workflowService.getWorkflowExecutionHistory({
      namespace: client.options.namespace,
      execution: { workflowId: id, runId },
      maximumPageSize: 1,
    });
    const [event] = (history?.events ?? []).map(decodeEvent);
    return event?.type === 'started' ? event : null;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

/** Returns the run id of the oldest segment that the server keeps. `runId`: of any segment that it keeps. */
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

/** Whether the error says that the server has no such segment. */
export function isNotFound(error: unknown): boolean {
  if (error instanceof WorkflowNotFoundError) return true;
  const code: number | null = isGrpcServiceError(error) ? error.code : null;
  return NOT_FOUND.includes(code);
}
