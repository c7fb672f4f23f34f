import { isGrpcServiceError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import { decodeEvent, type HistoryEvent } from './decode-event.js';
import { project, type Projection } from './projection.js';
import type { EventOf } from './projection/state.js';

/** A segment of a run that was left behind. */
export interface Segment {
  readonly view: Projection;
  /** Run id of the segment before; empty in the first one. */
  readonly before: string;
}

/** Of gRPC: there is no such thing, or there cannot be one, as the server finds of an id that is none. */
const NOT_THERE: readonly (number | null)[] = [5, 3];

/** A whole segment; null where the server does not keep it any more. */
export async function readSegment(
  client: Client,
  id: string,
  runId: string,
): Promise<Segment | null> {
  try {
    const { events } = await client.workflow.getHandle(id, runId).fetchHistory();
    const facts = (events ?? []).map(decodeEvent);
    return { view: project(facts), before: previousRunId(facts) };
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

/** Run id of the segment before the one that these facts begin; empty in a run's first one. */
export function previousRunId([started]: readonly HistoryEvent[]): string {
  return started?.type === 'started' ? started.before : '';
}

/** How a segment began; null where the server does not keep it any more. */
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
    const [fact] = (history?.events ?? []).map(decodeEvent);
    return fact?.type === 'started' ? fact : null;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

/** The first segment of the run that the server still keeps. `runId`: of any one that it does. */
export async function oldestKeptSegment(client: Client, id: string, runId: string): Promise<string> {
  const first = (await readSegmentStart(client, id, runId))?.firstRunId ?? '';
  if (first !== '' && (await readSegmentStart(client, id, first)) !== null) return first;
  for (let kept = runId; ;) {
    const before = (await readSegmentStart(client, id, kept))?.before ?? '';
    if (before === '' || (await readSegmentStart(client, id, before)) === null) return kept;
    kept = before;
  }
}

/** The server has no such segment. */
export function isNotFound(error: unknown): boolean {
  if (error instanceof WorkflowNotFoundError) return true;
  const code: number | null = isGrpcServiceError(error) ? error.code : null;
  return NOT_THERE.includes(code);
}
