import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { expect, inject } from 'vitest';
import type { Agent } from '../../src/agents/agent.js';
import { project, type Projection } from '../../src/history/projection.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { History } from '../../src/history/history-event.js';
import { defineConfig, type Config } from '../../src/config.js';
import type { RunInput } from '../../src/core/input/input.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import { stopServer } from '../../src/server/dev-server.js';
import { createWorker, type RunningWorker } from '../../src/worker/create-worker.js';
import type { WorkerOptions } from '../../src/worker/options.js';
import { sourceBundle } from './bundle.js';
import { CANARIES, CANARY_NAMES } from './canaries.js';
import { replayLater } from './replays.js';
import { noteStarts, watchRuns } from './watched-runs.js';
import { canaryCodec, expectNoLeaks, watchFiles, watchHistory } from './canary-watch.js';

type Rest = Partial<WorkerOptions> & Pick<Config, 'models' | 'budgets'>;

/** A task queue of its own on the shared server, with the operations that tests need. */
export interface Rig {
  readonly client: Client;
  readonly isInMemory: boolean;
  readonly taskQueue: string;
  readonly home: string;
  worker(agents: readonly Agent[], rest?: Rest): Promise<RunningWorker>;
  start(input: RunInput | Record<string, unknown>, id?: string): Promise<WorkflowHandle>;
  /**
   * Starts a run, waits for its end, and returns everything about it. Its history is replayed at
   * the end of the file.
   */
  run(input: RunInput | Record<string, unknown>): Promise<Ended>;
  end(handle: WorkflowHandle): Promise<Ended>;
  stopWorkers(): Promise<void>;
  /** Exempts a run, or without `id` all runs, from the oracle if it cannot be compared. */
  exempt(why: string, id?: string): void;
  close(): Promise<void>;
}

export interface Ended {
  readonly outcome: Outcome;
  readonly history: History;
  readonly projection: Projection;
  readonly handle: WorkflowHandle;
}

export async function createRig(address: string = inject('temporalAddress')): Promise<Rig> {
  const connection = await Connection.connect({ address });
  const started = new Set<string>();
  const client = new Client({
    connection,
    dataConverter: { payloadCodecs: [canaryCodec] },
    interceptors: { workflow: [noteStarts(started)] },
  });
  const taskQueue = `test-${randomUUID()}`;
  const home = await mkdtemp(join(tmpdir(), 'perdure-rig-'));
  const workers: RunningWorker[] = [];
  const hasWorker = (): boolean => workers.length > 0;
  let isOfSources = true;
  const runs = watchRuns({
    client,
    taskQueue,
    started,
    hasWorker,
    isOfSources: () => isOfSources,
  });
  const rig: Rig = {
    client,
    isInMemory: false,
    taskQueue,
    home,
    async worker(agents, { models, budgets, ...rest } = {}) {
      const shared = { ...(models && { models }), ...(budgets && { budgets }) };
      const worker = await createWorker({
        config: defineConfig({ agents, ...shared }),
        address,
        taskQueue,
        env: { ...CANARIES, PERDURE_HOME: home },
        secrets: CANARY_NAMES,
        workflowBundle: await sourceBundle(),
        shutdownGrace: 200,
        ...rest,
      });
      workers.push(worker);
      if (rest.workflowBundle !== undefined) isOfSources = false;
      return worker;
    },
    async start(input, id = `run-${randomUUID()}`) {
      return await client.workflow.start('agent', { taskQueue, workflowId: id, args: [input] });
    },
    async run(input) {
      return await rig.end(await rig.start(input));
    },
    async end(handle) {
      const ended = await endOf(handle);
      await runs.check(handle.workflowId);
      return ended;
    },
    async stopWorkers() {
      await Promise.allSettled(workers.splice(0).map((worker) => worker.shutdown()));
    },
    exempt(why, id) {
      runs.exempt(why, id);
    },
    async close() {
      try {
        await runs.close();
      } finally {
        await rig.stopWorkers();
        await terminateRuns(client, taskQueue);
        await connection.close();
      }
      await removeHome(home);
      expectNoLeaks();
    },
  };
  return rig;
}

/** Removes the home of a rig. Throws if a command has started a server in it, which would outlive the tests. */
export async function removeHome(home: string): Promise<void> {
  await watchFiles(home);
  const isStray = await stopServer(home);
  await rm(home, { recursive: true, force: true });
  if (isStray) throw new Error('a test has started a server of its own; give it the address');
}

/** Ends what a test has left open, which `doctor` would find on the server in other tests. */
async function terminateRuns({ workflow }: Client, taskQueue: string): Promise<void> {
  const query = `TaskQueue = "${taskQueue}" AND ExecutionStatus = "Running"`;
  try {
    for await (const { workflowId } of workflow.list({ query })) {
      await workflow.getHandle(workflowId).terminate('the test is over');
    }
  } catch {
    // The test has stopped the server, or the run has just ended.
  }
}

/** Waits for the end of a run, and records it. Its history is replayed at the end of the file. */
export async function endOf(handle: WorkflowHandle): Promise<Ended> {
  await handle.result().catch(() => undefined);
  const history = await handle.fetchHistory();
  const projection = project((history.events ?? []).map(decodeEvent));
  watchHistory(history);
  replayLater(history, handle.workflowId);
  await keepHistory(history);
  const { outcome } = projection;
  if (!outcome) throw new Error(`the run ended without an outcome: ${projection.ended?.how}`);
  return { outcome, history, projection, handle };
}

/** If RECORD_HISTORIES names a folder, writes the history there under the test's name. */
export async function keepHistory(history: History, part = ''): Promise<void> {
  const folder = process.env['RECORD_HISTORIES'];
  if (folder === undefined) return;
  const name = expect.getState().currentTestName ?? 'unnamed';
  const file = `${(name + part).replaceAll(/[^a-z0-9]+/gi, '-').toLowerCase()}.json`;
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, file), historyToJSON(history));
}
