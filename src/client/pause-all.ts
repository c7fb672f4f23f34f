import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { InputError } from '../core/errors.js';
import { show } from '../core/text/format-value.js';
import { pauseSignal, type ActorClaim } from '../workflows/messages/definitions.js';
import { claim } from '../updates/control.js';
import { queryTerm, withoutAttributes } from './queries.js';
import { readRunRow } from './run-row.js';

/** Which runs to pause, and who pauses them. */
export interface PauseAllOptions extends ActorClaim {
  /** The agent's name. */
  readonly agent: string;
  /** A callback that is called after each run. */
  readonly onProgress?: (progress: PauseProgress) => void;
  /** Ends the operation early. Runs that were already signaled still pause. */
  readonly signal?: AbortSignal;
}

/** The number of runs that were signaled to pause. */
export interface PauseProgress {
  /** Runs for which the server has recorded the signal. */
  readonly signaled: number;
  /** Runs that ended in the meantime. */
  readonly ended: number;
  /** Runs that the server could not signal, or whose agent could not be read; they continue. */
  readonly failed: number;
}

/** How `pauseAll` ended. */
export interface PauseAllResult extends PauseProgress {
  /** The first error of a run that could not be signaled; null if there was none. */
  readonly error: string | null;
}

const AT_ONCE = 20;

/**
 * Signals every running run of an agent to pause. The server records the signals even while no
 * worker runs, and each run pauses when a worker picks it up. A run that starts later is not
 * paused. Rejects with an `InputError` if an option is invalid, and if the server does not list the
 * runs.
 */
export async function pauseAllRuns(
  client: Client,
  { agent, by, onProgress, signal }: PauseAllOptions,
): Promise<PauseAllResult> {
  if (typeof agent !== 'string' || agent === '') {
    throw new InputError(`agent: expected the name of an agent, got ${show(agent)}`);
  }
  const actor = claim(by);
  const count = { signaled: 0, ended: 0, failed: 0 };
  let error: string | null = null;
  const pauseOne = async (id: string): Promise<void> => {
    try {
      await client.workflow.getHandle(id).signal(pauseSignal, actor);
      count.signaled += 1;
    } catch (reason) {
      if (reason instanceof WorkflowNotFoundError) count.ended += 1;
      else {
        count.failed += 1;
        error ??= reason instanceof Error ? reason.message : String(reason);
      }
    }
    onProgress?.({ ...count });
  };
  const skip = (why: string): void => {
    count.failed += 1;
    error ??= why;
    onProgress?.({ ...count });
  };
  await forEachAtOnce(runningIds(client, agent, skip), pauseOne, signal);
  return { ...count, error };
}

/**
 * Yields each run once: the server may list a run twice if it continues in a new segment during the
 * listing. `skip` is called for a run whose agent cannot be read.
 */
async function* runningIds(
  client: Client,
  agent: string,
  skip: (why: string) => void,
): AsyncGenerator<string, void, undefined> {
  const running = `WorkflowType = 'agent' AND ExecutionStatus = 'Running'`;
  const seen = new Set<string>();
  const infos = withoutAttributes(client, {
    // A run has no attributes before its agent is loaded; such runs are also paused.
    query: `${running} AND (${queryTerm('AgentName', agent)} OR AgentName IS NULL)`,
    // Without search attributes, each run must be read to find its agent.
    otherwise: running,
  });
  for await (const found of infos) {
    const { info, byAttributes } = found;
    if (seen.has(info.workflowId)) continue;
    seen.add(info.workflowId);
    const [named] = byAttributes ? (info.searchAttributes['AgentName'] ?? []) : [];
    if (named === undefined) {
      const row = await readRunRow(client, found);
      if (row.agent === agent) yield row.id;
      else if (row.agent === null && row.unreadable !== undefined) skip(row.unreadable);
    } else if (named === agent) {
      yield info.workflowId;
    }
  }
}

/** Calls `work`, which never rejects, for each item, at most `AT_ONCE` at the same time. */
async function forEachAtOnce<T>(
  items: AsyncGenerator<T, void, undefined>,
  work: (item: T) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  // A generator queues concurrent calls of `next`, so the workers share it.
  const worker = async (): Promise<void> => {
    for await (const item of { [Symbol.asyncIterator]: () => ({ next: () => items.next() }) }) {
      signal?.throwIfAborted();
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
