import { isDeepStrictEqual } from 'node:util';
import type { Worker as NodeThread } from 'node:worker_threads';
import { Worker } from '@temporalio/worker';
import {
  ThreadedVMWorkflowCreator,
  type ThreadedVMWorkflowCreatorOptions,
  type WorkerThreadClient,
} from '@temporalio/worker/lib/workflow/threaded-vm.js';

/** The workflow thread of one worker. */
type Thread = ThreadedVMWorkflowCreator;
type Bundle = ThreadedVMWorkflowCreatorOptions['workflowBundle'];
/** A protected method of `Worker`: reads and parses the bundle. */
type ParseBundle = (options: CompiledOptions, logger: unknown) => Promise<Bundle | undefined>;
interface CompiledOptions {
  readonly workflowBundle?: { readonly code?: string };
}

interface IdleThread {
  readonly thread: Thread;
  readonly settings: object;
}

/** Threads of workers that have shut down. A thread takes about 50 MB. */
const idle: IdleThread[] = [];
const MAX_IDLE = 3;

let isReusing = false;

/**
 * Lets each worker of this process take over the workflow thread of one that has shut down, and
 * parses a bundle once. Each would otherwise cost half a second of CPU time per worker. Two workers
 * never share a thread, and a thread that still holds a workflow ends with its worker.
 */
export function reuseWorkflowThreads(): void {
  if (isReusing) return;
  isReusing = true;
  parseBundlesOnce();
  const create = ThreadedVMWorkflowCreator.create.bind(ThreadedVMWorkflowCreator);
  ThreadedVMWorkflowCreator.create = async (options) => {
    const { logger, ...settings } = options;
    const thread = takeIdle(settings) ?? (await create({ ...settings, logger }));
    thread.destroy = async () => {
      if (idle.length < MAX_IDLE && !clientsOf(thread).some(isInUse)) {
        keepIdle({ thread, settings });
      } else await ThreadedVMWorkflowCreator.prototype.destroy.call(thread);
    };
    return thread;
  };
}

function takeIdle(settings: object): Thread | undefined {
  const index = idle.findIndex((each) => isDeepStrictEqual(each.settings, settings));
  const [taken] = index < 0 ? [] : idle.splice(index, 1);
  if (taken === undefined) return undefined;
  for (const client of clientsOf(taken.thread)) nodeThread(client).ref();
  return taken.thread;
}

/** Stores a thread, which does not keep the process alive. */
function keepIdle(kept: IdleThread): void {
  for (const client of clientsOf(kept.thread)) nodeThread(client).unref();
  idle.push(kept);
}

function clientsOf(thread: Thread): readonly WorkerThreadClient[] {
  return Reflect.get(thread, 'workerThreadClients') as readonly WorkerThreadClient[];
}

function nodeThread(client: WorkerThreadClient): NodeThread {
  return Reflect.get(client, 'workerThread') as NodeThread;
}

/** Returns whether the thread holds a workflow, or has ended. */
function isInUse(client: WorkerThreadClient): boolean {
  return client.getActiveWorkflowCount() > 0 || Reflect.get(client, 'workerExited') === true;
}

/** Caches the last bundle that was parsed: tests use one, or few in turn. */
function parseBundlesOnce(): void {
  const name = 'getOrCreateBundle';
  const parse = (Reflect.get(Worker, name) as ParseBundle).bind(Worker);
  let last: { readonly code: string; readonly bundle: Promise<Bundle | undefined> } | undefined;
  const parseOnce: ParseBundle = async (options, logger) => {
    const code = options.workflowBundle?.code;
    if (code === undefined) return await parse(options, logger);
    if (last?.code !== code) last = { code, bundle: parse(options, logger) };
    return await last.bundle;
  };
  Reflect.set(Worker, name, parseOnce);
}
