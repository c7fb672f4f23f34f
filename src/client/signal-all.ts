import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { InputError } from '../core/errors.js';
import { show } from '../core/text/format-value.js';
import { pauseSignal, resumeSignal, type ActorClaim } from '../workflows/messages/definitions.js';
import { claim } from '../updates/control.js';
import { queryTerm, withoutAttributes } from './queries.js';
import { readRunRow } from './run-row.js';

/** Which runs to pause or resume, and who does so. */
export interface AllRunsOptions extends ActorClaim {
  /** The agent's name. */
  readonly agent: string;
  /** A callback that is called after each run. */
  readonly onProgress?: (progress: AllRunsProgress) => void;
  /** Ends the operation early. The signals that were already sent take effect. */
  readonly signal?: AbortSignal;
}

/** The number of runs that were signaled to pause or to resume. */
export interface AllRunsProgress {
  /** Runs for which the server has recorded the signal. */
  readonly signaled: number;
  /** Runs that ended in the meantime. */
  readonly ended: number;
  /** Runs that the server could not signal, or whose agent could not be read; they do not change. */
  readonly failed: number;
}

/** How `pauseAll` or `resumeAll` ended. */
export interface AllRunsResult extends AllRunsProgress {
  /** The first error of a run that could not be signaled; null if there was none. */
  readonly error: string | null;
}

const AT_ONCE = 20;

/** The signals that every running run of an agent can get. */
const SIGNALS = { pause: pauseSignal, resume: resumeSignal } as const;

/**
 * Signals every running run of an agent to pause or to resume. The server records the signals even
 * while no worker runs, and they take effect when a worker picks up the run. A run that starts later
 * gets none. Rejects with an `InputError` if an option is invalid, and if the server does not list
 * the runs.
 */
export async function signalAllRuns(
  client: Client,
  what: keyof typeof SIGNALS,
  { agent, by, onProgress, signal }: AllRunsOptions,
): Promise<AllRunsResult> {
  if (typeof agent !== 'string' || agent === '') {
    throw new InputError(`agent: expected the name of an agent, got ${show(agent)}`);
  }
  const actor = claim(by);
  const count = { signaled: 0, ended: 0, failed: 0 };
  let error: string | null = null;
  const signalOne = async (id: string): Promise<void> => {
    try {
      await client.workflow.getHandle(id).signal(SIGNALS[what], actor);
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
  await forEachAtOnce(runningIds(client, agent, skip), signalOne, signal);
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
