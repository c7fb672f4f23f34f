import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { UnreadableError } from '../core/errors.js';
import { fetchHistory, listWorkflows } from '../temporal/server-answers.js';
import type { History } from './history-event.js';

/** A run with the history of its newest segment. */
export interface MatchingRun {
  readonly id: string;
  readonly runId: string;
  readonly history: History;
}

/** Counts of matches that were skipped while the runs were read. */
export interface SkipCounts {
  /** Workflows that are not agents, by type. */
  readonly others: Map<string, number>;
  /** Segments that were continued; the run matches by its newest segment. */
  earlier: number;
  /** Runs that were deleted, or whose retention ended, after the server listed them. */
  gone: number;
  /** The ids of runs whose histories are encoded, and the client lacks the codec or the key. */
  readonly unreadable: string[];
  /** More runs match than were requested. */
  more: boolean;
}

export function createSkipCounts(): SkipCounts {
  return { others: new Map(), earlier: 0, gone: 0, unreadable: [], more: false };
}

/**
 * Yields the runs of agents that a visibility query finds, at most `limit`, each with its history.
 * Each history is fetched on demand. Rejects if the server refuses the query.
 */
export async function* matchingRuns(
  client: Client,
  { query, limit }: { readonly query: string; readonly limit: number },
  skipped: SkipCounts,
): AsyncGenerator<MatchingRun, void, undefined> {
  let found = 0;
  for await (const { info } of listWorkflows(client, query)) {
    const { type, status, workflowId: id, runId } = info;
    if (type !== 'agent') {
      skipped.others.set(type, (skipped.others.get(type) ?? 0) + 1);
    } else if (status.name === 'CONTINUED_AS_NEW') {
      skipped.earlier += 1;
    } else if (found === limit) {
      skipped.more = true;
      return;
    } else {
      const history = await historyOf(client, { id, runId });
      if (history === 'unreadable') skipped.unreadable.push(id);
      else if (history === null) skipped.gone += 1;
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
): Promise<History | 'unreadable' | null> {
  try {
    return await fetchHistory(client, id, runId);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    if (UnreadableError.isInstance(error)) return 'unreadable';
    throw error;
  }
}
