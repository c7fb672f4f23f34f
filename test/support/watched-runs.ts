import type { Client, WorkflowClientInterceptor } from '@temporalio/client';
import { expect } from 'vitest';
import { differenceMessage, NoAnswerError, readerDifferences } from './reader-agrees.js';

/** The runs of one task queue, each to be compared with a reader of its history. */
export interface WatchedRuns {
  /** Compares one run now. */
  check(id: string): Promise<void>;
  /** Compares all runs that have started, also those that are still open. */
  checkAll(): Promise<void>;
  /** Compares them for the last time. */
  close(): Promise<void>;
}

/** The runs of all rigs that are open. Test files share processes. */
const watched = new Set<WatchedRuns>();
/** With PERDURE_ORACLE=report, differences are printed and fail nothing. */
const isReport = process.env['PERDURE_ORACLE'] === 'report';

/** Throws if a reader differs from one of the runs that the open rigs have started. */
export async function expectReadersAgree(): Promise<void> {
  for (const runs of watched) await runs.checkAll();
}

/** Watches the runs of a task queue. `started`: ids of runs that the server may not list yet. */
export function watchRuns(
  client: Client,
  taskQueue: string,
  started: ReadonlySet<string>,
): WatchedRuns {
  /** Moments of runs that were compared. */
  const compared = new Set<string>();
  /** Runs that had ended when they were compared, or that cannot answer. */
  const over = new Set<string>();

  async function differencesOf(id: string): Promise<readonly string[]> {
    const handle = client.workflow.getHandle(id);
    try {
      const { status } = await handle.describe();
      const found = await readerDifferences(handle, compared);
      if (status.name !== 'RUNNING') over.add(id);
      return found.length === 0 ? [] : [differenceMessage(id, found)];
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      over.add(id);
      print(`${id} is not compared: ${error.message}`);
      return [];
    }
  }

  async function ids(): Promise<ReadonlySet<string>> {
    const found = new Set(started);
    const query = `TaskQueue = "${taskQueue}" AND WorkflowType = "agent"`;
    for await (const { workflowId } of client.workflow.list({ query })) found.add(workflowId);
    return found;
  }

  async function checkEach(given: Iterable<string>): Promise<void> {
    const found: string[] = [];
    for (const id of given) if (!over.has(id)) found.push(...(await differencesOf(id)));
    if (found.length === 0) return;
    if (!isReport) throw new Error(found.join('\n'));
    for (const one of found) print(one);
  }

  const runs: WatchedRuns = {
    check: async (id) => await checkEach([id]),
    checkAll: async () => await checkEach(await ids()),
    async close() {
      watched.delete(runs);
      await runs.checkAll();
    },
  };
  watched.add(runs);
  return runs;
}

function print(text: string): void {
  const { currentTestName = 'between tests', testPath = '' } = expect.getState();
  const file = testPath.slice(testPath.lastIndexOf('/test/') + 1);
  process.stderr.write(`[oracle] ${file} > ${currentTestName}: ${text}\n`);
}

/** Returns an interceptor that notes the id of each run that a client starts. */
export function noteStarts(started: Set<string>): WorkflowClientInterceptor {
  return {
    async startWithDetails(input, next) {
      const output = await next(input);
      started.add(input.options.workflowId);
      return output;
    },
    async startUpdateWithStart(input, next) {
      const output = await next(input);
      started.add(input.workflowStartOptions.workflowId);
      return output;
    },
    async signalWithStart(input, next) {
      const output = await next(input);
      started.add(input.options.workflowId);
      return output;
    },
  };
}
