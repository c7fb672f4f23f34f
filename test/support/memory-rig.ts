import { randomUUID } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { defineConfig } from '../../src/config.js';
import type { Activities } from '../../src/core/run/contract.js';
import {
  allSegments,
  openHost,
  type MemoryHost,
  type MemoryWorker,
} from '../../src/memory/host.js';
import { STATUS } from '../../src/memory/segment.js';
import { createWorkerParts } from '../../src/worker/parts.js';
import { CANARIES, CANARY_NAMES } from './canaries.js';
import { expectNoLeaks, watchHistory } from './canary-watch.js';
import { createRig, endOf, removeHome, type Rig } from './rig.js';
import { watchRuns } from './watched-runs.js';

/** The default of `skips`: most retries and timeouts, but no deadline by which a person decides. */
const SKIPPED_MS = 20_000;
/** How often the rig looks for timers, in ms. */
const TICK_MS = 5;

/** A request to delete a run, as a server gets it. */
interface Deletion {
  readonly workflowExecution: { readonly workflowId: string; readonly runId: string };
}

/** Options of a worker that a rig in memory cannot have. */
const NOT_IN_MEMORY = [
  'workflowBundle',
  'deployment',
  'live',
  'interceptors',
  'workflows',
  'activities',
] as const;

/**
 * Creates a rig for tests to which Temporal is only a vehicle. The runs happen in memory, with the same workflow
 * code, activities, and client, so that a run takes milliseconds. When nothing runs, a timer that is due within
 * `skips` ms fires at once. A new worker takes the place of the one before, and only the runs of one id can be listed. With
 * `TEST_WORLD=server`, it is a rig on the server.
 */
export async function createMemoryRig({ skips = SKIPPED_MS } = {}): Promise<Rig> {
  if (process.env['TEST_WORLD'] === 'server') return await createRig();
  const taskQueue = `test-${randomUUID()}`;
  const home = await mkdtemp(join(tmpdir(), 'perdure-rig-'));
  const workers: MemoryWorker[] = [];
  const parts = { env: { ...CANARIES, PERDURE_HOME: home }, secrets: CANARY_NAMES };
  const names = Object.keys(createWorkerParts({ agents: [] }, parts).activities);
  const host = await openHost(Date.now(), () => workerFor(workers, names));
  const { client, server } = host;
  const ended = new AbortController();
  Object.assign(client.workflowService, {
    deleteWorkflowExecution: ({ workflowExecution: { workflowId, runId } }: Deletion) => {
      const left = server.runs.get(workflowId)?.filter((one) => one.runId !== runId) ?? [];
      if (left.length > 0) server.runs.set(workflowId, left);
      else server.runs.delete(workflowId);
      return Promise.resolve({});
    },
    listWorkflowExecutions: async ({ query }: { readonly query: string }) => {
      const [, workflowId = ''] = /WorkflowId = '([^']+)'/.exec(query) ?? [];
      const newest = server.runs
        .get(workflowId)
        ?.filter(({ status }) => status !== STATUS.continued)
        .toReversed();
      const described = (newest ?? []).map(async ({ runId }) => {
        const execution = { workflowId, runId };
        const answer = await client.workflowService.describeWorkflowExecution({ execution });
        return answer.workflowExecutionInfo;
      });
      return { executions: await Promise.all(described), nextPageToken: Buffer.alloc(0) };
    },
  });
  const failed = skipTime(host, { skips, ended: ended.signal });
  // A test learns of it by what it waits for.
  failed.catch(() => undefined);
  failTogether(client.workflowService, failed);
  const runs = watchRuns({
    client,
    taskQueue,
    started: new Set(),
    hasWorker: () => workers.length > 0,
    isOfSources: () => false,
    list: () => [...server.runs.keys()],
  });
  const rig: Rig = {
    client,
    isInMemory: true,
    taskQueue,
    home,
    async worker(agents, { models, ...rest } = {}) {
      const refused = NOT_IN_MEMORY.find((name) => rest[name] !== undefined);
      if (refused !== undefined) throw new Error(`a rig in memory has no ${refused}`);
      const config = defineConfig({ agents, ...(models && { models }) });
      workers.push(createWorkerParts(config, { ...parts, ...rest }));
      return {
        taskQueue,
        identity: 'memory',
        deployed: null,
        live: null,
        stopped: Promise.resolve(),
        shutdown: async () => await rig.stopWorkers(),
      };
    },
    async start(input, id = `run-${randomUUID()}`) {
      return await client.workflow.start('agent', { taskQueue, workflowId: id, args: [input] });
    },
    async run(input) {
      return await rig.end(await rig.start(input));
    },
    async end(handle) {
      const end = await Promise.race([endOf(handle), failed]);
      await runs.check(handle.workflowId);
      return end;
    },
    async stopWorkers() {
      for (const { stop, close } of workers.splice(0)) {
        stop();
        await close();
      }
    },
    exempt(why, id) {
      runs.exempt(why, id);
    },
    async close() {
      try {
        await runs.close();
      } finally {
        ended.abort();
        await rig.stopWorkers();
        await host.close();
      }
      for (const { events } of allSegments(server)) watchHistory({ events });
      await removeHome(home);
      expectNoLeaks();
    },
  };
  return rig;
}

/** Makes the calls of a service that wait for a run reject when the host has failed. */
function failTogether(service: object, failed: Promise<never>): void {
  for (const [name, call] of Object.entries(service)) {
    if (typeof call !== 'function') continue;
    const made: unknown = async (...args: readonly unknown[]): Promise<unknown> =>
      await Promise.race([Reflect.apply(call, service, args), failed]);
    Object.assign(service, { [name]: made });
  }
}

/** Returns a worker whose activities are those of the newest worker. Without one, they wait for it. */
function workerFor(workers: readonly MemoryWorker[], names: readonly string[]): MemoryWorker {
  const current = async (): Promise<Activities> => {
    for (;;) {
      const worker = workers.at(-1);
      if (worker !== undefined) return worker.activities;
      await pause(TICK_MS);
    }
  };
  const entries = names.map((name) => [
    name,
    async (input: never): Promise<unknown> =>
      await (await current())[name as keyof Activities](input),
  ]);
  return {
    activities: Object.fromEntries(entries) as Activities,
    stop: () => undefined,
    close: async () => undefined,
  };
}

/**
 * Moves the clock to the next timer when nothing runs: at once if it is due within `skips` ms, else after as
 * much real time. Rejects if a workflow task fails.
 */
async function skipTime(
  { pace, server: { clock } }: MemoryHost,
  { skips, ended }: { readonly skips: number; readonly ended: AbortSignal },
): Promise<never> {
  for (;;) {
    await pace.idle();
    if (ended.aborted) return await new Promise<never>(() => undefined);
    const [next] = clock.pending();
    const leftMs = next === undefined ? Infinity : next.at - clock.now();
    if (leftMs <= skips || next?.isOver() === true) clock.advance();
    else await pause(TICK_MS, undefined, { ref: false });
  }
}
