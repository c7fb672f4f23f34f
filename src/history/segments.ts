import { isGrpcServiceError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import { readFact, type HistoryFact } from './decode-event.js';
import { project, type Projection } from './projection.js';
import type { FactOf } from './projection/state.js';

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
    const facts = (events ?? []).map(readFact);
    return { view: project(facts), before: beforeOf(facts) };
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

/** Run id of the segment before the one that these facts begin; empty in a run's first one. */
export function beforeOf([started]: readonly HistoryFact[]): string {
  return started?.type === 'started' ? started.before : '';
}

/** How a segment began; null where the server does not keep it any more. */
export async function beginningOf(
  client: Client,
  id: string,
  runId: string,
): Promise<FactOf<'started'> | null> {
  try {
    const { history } = await client.workflowService.getWorkflowExecutionHistory({
      namespace: client.options.namespace,
      execution: { workflowId: id, runId },
      maximumPageSize: 1,
    });
    const [fact] = (history?.events ?? []).map(readFact);
    return fact?.type === 'started' ? fact : null;
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

/** The first segment of the run that the server still keeps. `runId`: of any one that it does. */
export async function oldestKept(client: Client, id: string, runId: string): Promise<string> {
  const first = (await beginningOf(client, id, runId))?.firstRunId ?? '';
  if (first !== '' && (await beginningOf(client, id, first)) !== null) return first;
  for (let kept = runId; ;) {
    const before = (await beginningOf(client, id, kept))?.before ?? '';
    if (before === '' || (await beginningOf(client, id, before)) === null) return kept;
    kept = before;
  }
}

/** The server has no such segment. */
export function isGone(error: unknown): boolean {
  if (error instanceof WorkflowNotFoundError) return true;
  const code: number | null = isGrpcServiceError(error) ? error.code : null;
  return NOT_THERE.includes(code);
}
