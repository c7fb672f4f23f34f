import type { Client } from '@temporalio/client';
import { nextRunId, segmentEvents, type FollowedSegment } from './follow-history.js';
import { createProjector, type Projection } from './projection.js';

export type { FollowedSegment } from './follow-history.js';

/** A run as of its newest event. */
export interface FollowedRun {
  /** Run id of the segment that the view shows. */
  readonly runId: string;
  readonly view: Projection;
}

/**
 * Follows a run through its segments by long polling its history, which needs no worker. Ends with
 * the run, or when the signal aborts. Rejects if the server stays unreachable.
 */
export async function* followSegments(
  client: Client,
  { id, runId: first, signal }: FollowedSegment,
): AsyncGenerator<FollowedRun, void, undefined> {
  for (let runId: string | null = first; runId !== null;) {
    const projector = createProjector();
    for await (const events of segmentEvents(client, { id, runId, signal })) {
      for (const event of events) projector.push(event);
      yield { runId, view: projector.view() };
    }
    if (signal.aborted) return;
    runId = nextRunId(projector.view().ended);
  }
}
