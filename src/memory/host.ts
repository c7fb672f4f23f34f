import { readFile } from 'node:fs/promises';
import type { Client } from '@temporalio/client';
import type { Activities } from '../core/run/contract.js';
import type { ObjectStore } from '../storage/tool-lock.js';
import { type WorkflowCreator, workerRuntime } from '../temporal/sdk-internals.js';
import { loadWorkflowCode } from '../worker/bundle.js';
import { type ActivityHost, loseAttempts } from './activities.js';
import { type ActivityFunction, isLost, never } from './attempt.js';
import { createClock, type Pace, createPace } from './clock.js';
import { createMemoryClient } from './connection.js';
import { type Segment } from './segment.js';
import { type MemoryServer, report } from './server.js';
import { wake } from './tasks.js';
import type { WorkflowHost } from './workflow-task.js';

/** A server and a worker in this process, without a socket. */
export interface MemoryHost {
  readonly server: MemoryServer;
  readonly client: Client;
  readonly pace: Pace;
  /** Kills the worker, and starts another one. */
  readonly kill: () => void;
  close(): Promise<void>;
}

/** A worker's activities, and what ends them. */
export interface MemoryWorker {
  readonly activities: Activities;
  readonly stop: () => void;
  readonly close: () => Promise<void>;
}

let loaded: Promise<WorkflowCreator> | undefined;

/** Loads the workflow code once for the whole process: it keeps nothing of a run. */
function loadWorkflows(activityNames: readonly string[]): Promise<WorkflowCreator> {
  loaded ??= createWorkflows(activityNames);
  return loaded;
}

async function createWorkflows(activityNames: readonly string[]): Promise<WorkflowCreator> {
  const bundle = await loadWorkflowCode();
  const code = 'code' in bundle ? bundle.code : await readFile(bundle.codePath, 'utf8');
  const path = 'codePath' in bundle ? bundle.codePath : '/perdure/workflow-bundle.js';
  return workerRuntime().createWorkflows(code, path, new Set(activityNames));
}

/** Opens a host. `start` is its Unix time in ms; `createWorker` is called again after each death. */
export async function openHost(
  start: number,
  createWorker: () => MemoryWorker,
): Promise<MemoryHost> {
  const workers = [createWorker()];
  const current = (): MemoryWorker => {
    const worker = workers.at(-1);
    if (worker === undefined) throw new Error('in memory: there is no worker');
    return worker;
  };
  const workflows = await loadWorkflows(Object.keys(current().activities));
  const clock = createClock(start);
  const pace = createPace(clock);
  let client: Client | undefined;
  const created = new Set<Awaited<ReturnType<WorkflowCreator['createWorkflow']>>>();
  const activities: ActivityHost = {
    clock,
    functions: functionsOf(current),
    client() {
      if (client === undefined) throw new Error('in memory: there is no client');
      return client;
    },
    begin: pace.begin,
    end: pace.end,
    attempts: new Map(),
    pending: new Map(),
    locals: new Map(),
    probes: new Map(),
    report: (segment, events) => report(server, segment, events),
  };
  const tracked: WorkflowHost['workflows'] = {
    async createWorkflow(options) {
      const workflow = await workflows.createWorkflow(options);
      created.add(workflow);
      return workflow;
    },
    destroy: async () => undefined,
  };
  const server: MemoryServer = {
    clock,
    workflows: tracked,
    activities,
    runs: new Map(),
    fail: pace.fail,
    wake: (segment) => wake(server, segment),
    segments: 0,
  };
  client = createMemoryClient(server);
  return {
    server,
    client,
    pace,
    kill() {
      loseAttempts(activities);
      for (const segment of allSegments(server)) segment.cached = null;
      workers.push(createWorker());
    },
    async close() {
      pace.stop();
      for (const worker of workers) worker.stop();
      for (const workflow of created) await workflow.dispose();
      await Promise.all(workers.map((worker) => worker.close()));
    },
  };
}

/** All segments of all runs. */
export function allSegments({ runs }: MemoryServer): readonly Segment[] {
  return [...runs.values()].flat();
}

/** Returns the functions of the worker that is alive when they are called. */
function functionsOf(current: () => MemoryWorker): Readonly<Record<string, ActivityFunction>> {
  const { activities } = current();
  const entries = Object.keys(activities).map((name) => [
    name,
    async (input: never): Promise<unknown> => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the names are its keys
      const activity = current().activities[name as keyof Activities];
      const result: unknown = await activity(input);
      // Nobody learns of what a dead worker has done.
      return isLost() ? await never() : result;
    },
  ]);
  return Object.fromEntries(entries);
}

/** Creates an object store in memory. */
export function memoryObjects(): ObjectStore {
  const objects = new Map<string, { readonly bytes: Buffer; readonly at: number }>();
  return {
    place: 'memory',
    async put(name, bytes) {
      objects.set(name, { bytes, at: Date.now() });
    },
    async create(name, bytes) {
      if (objects.has(name)) return false;
      objects.set(name, { bytes, at: Date.now() });
      return true;
    },
    get: async (name) => objects.get(name)?.bytes ?? null,
    async list(folder) {
      const begin = `${folder}/`;
      return [...objects.keys()]
        .filter((name) => name.startsWith(begin))
        .map((name) => name.slice(begin.length).split('/').at(-1) ?? '');
    },
    entries: async (folder) =>
      [...objects].flatMap(([name, { at }]) =>
        folder === '' || name.startsWith(`${folder}/`) ? [{ name, at }] : [],
      ),
    async remove(name, before) {
      if ((objects.get(name)?.at ?? 0) >= before) return false;
      objects.delete(name);
      return true;
    },
  };
}
