import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import type { History } from './decode-event.js';

/** A run as it stands: its newest segment with all that is recorded of it. */
export interface MatchingRun {
  readonly id: string;
  readonly runId: string;
  readonly history: History;
}

/** What matched and is no run to look at; filled while the runs are read. */
export interface SkipCounts {
  /** Workflows that are no agents, by their type. */
  readonly others: Map<string, number>;
  /** Segments that have been continued; the run itself is another one. */
  earlier: number;
  /** Deleted, or past its retention, since the server listed it. */
  gone: number;
  /** There are more than were asked for. */
  more: boolean;
}

export function createSkipCounts(): SkipCounts {
  return { others: new Map(), earlier: 0, gone: 0, more: false };
}

/**
 * The runs of agents that a visibility query finds, at most `limit` of them, each with its history.
 * The next one is fetched when it is asked for. Rejects where the server refuses the query.
 */
export async function* matchingRuns(
  client: Client,
  { query, limit }: { readonly query: string; readonly limit: number },
  passedOver: SkipCounts,
): AsyncGenerator<MatchingRun, void, undefined> {
  let found = 0;
  for await (const { type, status, workflowId: id, runId } of client.workflow.list({ query })) {
    if (type !== 'agent') {
      passedOver.others.set(type, (passedOver.others.get(type) ?? 0) + 1);
    } else if (status.name === 'CONTINUED_AS_NEW') {
      passedOver.earlier += 1;
    } else if (found === limit) {
      passedOver.more = true;
      return;
    } else {
      const history = await historyOf(client, { id, runId });
      if (history === null) passedOver.gone += 1;
      else {
        found += 1;
        yield { id, runId, history };
      }
    }
  }
}

async function historyOf(
  client: Client,
  { id, runId }: { readonly id: string; readonly runId: string },
): Promise<History | null> {
  try {
    return await client.workflow.getHandle(id, runId).fetchHistory();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}
