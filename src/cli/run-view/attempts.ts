import type { Client } from '@temporalio/client';
import { describeWorkflow } from '../../temporal/server-answers.js';

/** An activity that Temporal retries. */
export interface Attempt {
  /** Counted from 1. */
  readonly attempt: number;
  /** Why the previous attempt failed; empty if unknown. */
  readonly lastFailure: string;
}

/** Reads the current attempts of the activities in flight, by activity id. */
export async function pendingAttempts(
  client: Client,
  id: string,
): Promise<ReadonlyMap<string, Attempt>> {
  const { raw } = await describeWorkflow(client, id);
  return new Map(
    (raw.pendingActivities ?? []).map(({ activityId, attempt, lastFailure }) => [
      activityId ?? '',
      { attempt: attempt ?? 1, lastFailure: lastFailure?.message ?? '' },
    ]),
  );
}
