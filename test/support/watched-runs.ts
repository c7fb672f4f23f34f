import {
  isGrpcServiceError,
  type Client,
  type WorkflowClientInterceptor,
} from '@temporalio/client';
import { expect } from 'vitest';
import {
  differenceMessage,
  NoAnswerError,
  NoStateError,
  readerDifferences,
  report,
} from './reader-agrees.js';

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
}

/** How long a worker that the rig does not know may take to answer. */
const OTHER_WORKER_MS = 5_000;

/** gRPC code of a server that does not answer: a test has stopped its own. */
const UNAVAILABLE = 14;

function unlessServerGone(error: unknown): null {
  const cause = error instanceof Error && isGrpcServiceError(error.cause) ? error.cause : error;
  const code: number | null = isGrpcServiceError(cause) ? cause.code : null;
  if (code === UNAVAILABLE) return null;
  throw error;
}

/** Watches the runs of a task queue. */
export function watchRuns({ client, taskQueue, started, hasWorker }: Watched): WatchedRuns {
  /** Moments of runs that were compared. */
  const compared = new Set<string>();
  /** Run ids that were compared after their end, or for which no worker answers. */
  const over = new Set<string>();
  /** Run ids that had no worker. A worker that starts later may answer. */
  const silent = new Set<string>();

  async function differencesOf(id: string): Promise<readonly string[]> {
    try {
      return await compareNow(id);
    } catch (error) {
      if (process.env['PERDURE_ORACLE'] === 'strict') throw error;
      // A test may close its connection or its server while its runs are compared.
      process.stderr.write(`[oracle] ${where()}${id} is not compared: ${String(error)}\n`);
      return [];
    }
  }

  async function compareNow(id: string): Promise<readonly string[]> {
    const handle = client.workflow.getHandle(id);
    const description = await handle.describe().catch(unlessServerGone);
    if (description === null) return [];
    const { status, runId } = description;
    if (over.has(runId) || (silent.has(runId) && !hasWorker())) return [];
    try {
      const answerMs = hasWorker() ? {} : { answerMs: OTHER_WORKER_MS };
      const found = await readerDifferences(handle, { compared, ...answerMs });
      if (status.name !== 'RUNNING') over.add(runId);
      return found.length === 0 ? [] : [differenceMessage(id, found)];
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      const hasEnded = error instanceof NoStateError && status.name !== 'RUNNING';
      (hasEnded || hasWorker() ? over : silent).add(runId);
      if (hasEnded) return [];
      process.stderr.write(`[oracle] ${where()}${id} is not compared: ${error.message}\n`);
      return [];
    }
  }

  async function ids(): Promise<ReadonlySet<string>> {
    const found = new Set(started);
    const query = `TaskQueue = "${taskQueue}" AND WorkflowType = "agent"`;
    try {
      for await (const { workflowId } of client.workflow.list({ query })) found.add(workflowId);
    } catch (error) {
      if (process.env['PERDURE_ORACLE'] === 'strict') unlessServerGone(error);
    }
    return found;
  }

  async function checkEach(given: Iterable<string>): Promise<void> {
    const found: string[] = [];
    for (const id of given) found.push(...(await differencesOf(id)));
    if (found.length > 0) report(found.join('\n'), where());
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

/** Names the test that runs now. */
function where(): string {
  const { currentTestName = 'between tests', testPath = '' } = expect.getState();
  return `${testPath.slice(testPath.lastIndexOf('/test/') + 1)} > ${currentTestName}: `;
}

/** Returns an interceptor that notes the id of each run that a client starts. */
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
