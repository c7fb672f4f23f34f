import { WorkflowNotFoundError } from '@temporalio/client';
import { decodeEvent, type History } from '../history/decode-event.js';
import { previousRunId } from '../history/segments.js';
import type { OpenedRun } from './open-run.js';

/** The history of one segment. */
export interface SegmentHistory {
  /** From 1. */
  readonly number: number;
  readonly runId: string;
  readonly history: History;
}

/** A run's segments from `last` back, as far as the server keeps them. */
export async function* segmentsBack(
  { client, run }: OpenedRun,
  last: SegmentHistory,
): AsyncGenerator<SegmentHistory, void, undefined> {
  for (let segment = last; ;) {
    yield segment;
    const runId = previousRunId((segment.history.events ?? []).slice(0, 1).map(decodeEvent));
    if (runId === '') return;
    try {
      const history: History = await client.workflow.getHandle(run.id, runId).fetchHistory();
      segment = { number: segment.number - 1, runId, history };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return;
      throw error;
    }
  }
}
