import type { Client } from '@temporalio/client';
import { nextRunId, segmentEvents, type FollowOptions } from './follow-history.js';
import { createProjector, type Projection } from './projection.js';

export type { FollowOptions } from './follow-history.js';

/** A run as of its newest event. */
export interface FollowedRun {
  /** Of the segment that is told of. */
  readonly runId: string;
  readonly view: Projection;
}

/**
 * Follows a run through its segments by the history's long poll, which needs no worker and disturbs
 * nobody. Ends with the run, or when the signal aborts; rejects when the server stays away.
 */
export async function* followRun(
  client: Client,
  { id, runId: first, signal }: FollowOptions,
): AsyncGenerator<FollowedRun, void, undefined> {
  for (let runId: string | null = first; runId !== null;) {
    const projector = createProjector();
    for await (const facts of segmentEvents(client, { id, runId, signal })) {
      for (const fact of facts) projector.push(fact);
      yield { runId, view: projector.view() };
    }
    if (signal.aborted) return;
    runId = nextRunId(projector.view().ended);
  }
}
