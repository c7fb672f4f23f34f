import type { Client, WorkflowClientInterceptor } from '@temporalio/client';
import { expect } from 'vitest';
import {
  compareLater,
  compareWithReader,
  differenceMessage,
  type Comparison,
} from './reader-agrees.js';

/** The runs of one task queue, each to be compared with a reader of its history. */
export interface WatchedRuns {
  /** Compares one run now. */
  check(id: string): Promise<void>;
  /** Compares all runs that have started, also those that are still open. */
  checkAll(): Promise<void>;
  /**
   * Exempts a run, or without `id` all runs, if it cannot be compared. `why` is printed. If a run
   * can be compared, it still has to agree.
   */
  exempt(why: string, id?: string): void;
  /** Compares all runs for the last time. */
  close(): Promise<void>;
}

/** The runs of all rigs that are open. Test files share processes. */
const watched = new Set<WatchedRuns>();

/** Throws if a reader differs from one of the runs that the open rigs have started. */
export async function expectReadersAgree(): Promise<void> {
  for (const runs of watched) await runs.checkAll();
}

interface Watched {
  readonly client: Client;
  readonly taskQueue: string;
  /** Ids of runs that the server may not list yet. */
  readonly started: ReadonlySet<string>;
  /** Whether the rig has a worker; one that the test runs elsewhere may answer too. */
  readonly hasWorker: () => boolean;
  /** Whether all its workers run the workflow code of the sources. */
  readonly isOfSources: () => boolean;
  /** Returns the ids of all runs; default: what the server lists for the task queue. */
  readonly list?: () => readonly string[];
}

/**
 * How long a worker that the rig does not know may take to answer, before the history is replayed.
 */
const OTHER_WORKER_MS = 2_000;

const NO_FAULT: Comparison = { differences: [], unchecked: [] };

/** Watches the runs of a task queue. */
export function watchRuns({
  client,
  taskQueue,
  started,
  hasWorker,
  isOfSources,
  list,
}: Watched): WatchedRuns {
  /** Moments of runs that were compared. */
  const compared = new Set<string>();
  /** The lengths of histories when they were compared, by run id. */
  const lengths = new Map<string, number>();
  /** Runs that had ended when they were compared. */
  const ended = new Set<string>();
  /** Reasons why runs may be exempt, by workflow id; the one under '' applies to all runs. */
  const exempted = new Map<string, string>();

  async function faultsOf(id: string): Promise<readonly string[]> {
    const { differences, unchecked } = await compareNow(id).catch((error: unknown) => ({
      differences: [],
      unchecked: [String(error)],
    }));
    const reason = exempted.get(id) ?? exempted.get('');
    if (unchecked.length > 0 && reason !== undefined) {
      const found = unchecked.join('; ');
      process.stderr.write(`[oracle] ${where()}${id} is not compared: ${reason} (${found})\n`);
    }
    const missing = reason === undefined ? unchecked.map((why) => `not compared: ${why}`) : [];
    const faults = [...differences, ...missing];
    return faults.length === 0 ? [] : [differenceMessage(id, faults)];
  }

  async function compareNow(id: string): Promise<Comparison> {
    const handle = client.workflow.getHandle(id);
    const description = await handle.describe();
    const { runId, historyLength } = description;
    if (lengths.get(runId) === historyLength) return NO_FAULT;
    const isOwn = hasWorker() && description.taskQueue === taskQueue;
    if (description.status.name !== 'RUNNING' && isOfSources() && !exempted.has(id)) {
      lengths.set(runId, historyLength);
      ended.add(runId);
      return await compareLater(handle, { runId, compared, where: where() });
    }
    const comparison = await compareWithReader(handle, {
      compared,
      ...(!isOwn && { answerMs: OTHER_WORKER_MS }),
    });
    const isExempt = exempted.has(id) || exempted.has('');
    if (comparison.unchecked.length === 0 || isExempt) lengths.set(runId, historyLength);
    return comparison;
  }

  async function ids(): Promise<ReadonlySet<string>> {
    if (list !== undefined) return new Set(list());
    const found = new Set(started);
    const listed = new Set<string>();
    const query = `TaskQueue = "${taskQueue}" AND WorkflowType = "agent"`;
    try {
      for await (const { workflowId, runId } of client.workflow.list({ query })) {
        // The newest run of an id comes first.
        const isLatest = !listed.has(workflowId);
        listed.add(workflowId);
        if (isLatest && ended.has(runId)) found.delete(workflowId);
        else if (isLatest) found.add(workflowId);
      }
    } catch (error) {
      if (!exempted.has('')) throw error;
    }
    return found;
  }

  /**
   * Tests run concurrently: each waits for the comparisons of the others, and does not repeat them.
   */
  let last: Promise<unknown> = Promise.resolve();

  async function checkInTurn(given: () => Promise<Iterable<string>>): Promise<void> {
    const check = last.then(async () => await checkEach(await given()));
    last = check.catch(() => undefined);
    await check;
  }

  async function checkEach(given: Iterable<string>): Promise<void> {
    const found: string[] = [];
    for (const id of given) found.push(...(await faultsOf(id)));
    if (found.length > 0) throw new Error(`${where()}${found.join('\n')}`);
  }

  const runs: WatchedRuns = {
    exempt: (why, id = '') => {
      exempted.set(id, why);
    },
    check: async (id) => await checkInTurn(async () => await Promise.resolve([id])),
    checkAll: async () => await checkInTurn(ids),
    async close() {
      watched.delete(runs);
      await runs.checkAll();
    },
  };
  watched.add(runs);
  return runs;
}

/** Names the current test. */
function where(): string {
  const { currentTestName = 'between tests', testPath = '' } = expect.getState();
  return `${testPath.slice(testPath.lastIndexOf('/test/') + 1)} > ${currentTestName}: `;
}

/** Returns an interceptor that records the id of each run that a client starts. */
export function noteStarts(started: Set<string>): WorkflowClientInterceptor {
  const note = (type: string, id: string): void => {
    if (type === 'agent') started.add(id);
  };
  return {
    async startWithDetails(input, next) {
      const output = await next(input);
      note(input.workflowType, input.options.workflowId);
      return output;
    },
    async startUpdateWithStart(input, next) {
      const output = await next(input);
      note(input.workflowType, input.workflowStartOptions.workflowId);
      return output;
    },
    async signalWithStart(input, next) {
      const output = await next(input);
      note(input.workflowType, input.options.workflowId);
      return output;
    },
  };
}
