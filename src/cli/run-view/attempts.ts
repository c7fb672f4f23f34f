import type { Client } from '@temporalio/client';

/** An activity that Temporal tries again. */
export interface Attempt {
  /** From 1. */
  readonly attempt: number;
  /** Why the one before failed; empty where nobody says. */
  readonly lastFailure: string;
}

/** How often the activities in flight have been tried, by activity id. */
export async function pendingAttempts(
  client: Client,
  id: string,
): Promise<ReadonlyMap<string, Attempt>> {
  const { raw } = await client.workflow.getHandle(id).describe();
  return new Map(
    (raw.pendingActivities ?? []).map(({ activityId, attempt, lastFailure }) => [
      activityId ?? '',
      { attempt: attempt ?? 1, lastFailure: lastFailure?.message ?? '' },
    ]),
  );
}
