import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WorkflowBundle } from '@temporalio/worker';
import { sourceBundle } from './bundle.js';
import { childScript, NO_THREAD } from './child-script.js';
import { workerByEnv, workflowsOnly } from './worker-by-env.js';

const SCRIPT = new URL('./worker-process.ts', import.meta.url);
let bundlePath: Promise<string> | undefined;

export interface WorkerChild {
  readonly pid: number;
  /** Resolves when the process is gone, with the signal that ended it. */
  readonly gone: Promise<NodeJS.Signals | null>;
  /** Sends SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
}

/** Starts a worker process and resolves when it polls. `files`: its limit of open files. */
export async function workerChild(
  env: Readonly<Record<string, string>>,
  { files }: { readonly files?: number } = {},
): Promise<WorkerChild> {
  bundlePath ??= writeBundle();
  const own = [process.execPath, ...childScript(SCRIPT)];
  const limited = ['bash', '-c', `ulimit -n ${files} && exec "$@"`, 'bash', ...own];
  const [command = '', ...args] = files === undefined ? own : limited;
  const child = spawn(command, args, {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { PATH: process.env['PATH'], BUNDLE: await bundlePath, ...NO_THREAD, ...env },
  });
  await Promise.race([once(child, 'message'), failed(child)]);
  const gone = new Promise<NodeJS.Signals | null>((resolve) => {
    child.once('exit', (_code, signal) => resolve(signal));
  });
  return {
    pid: child.pid ?? 0,
    gone,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/**
 * Creates the same worker in this process, which costs much less. For a worker that is not killed,
 * such as one that takes over from a killed one.
 */
export async function workerHere(
  env: Readonly<Record<string, string>>,
): Promise<{ stop(): Promise<void> }> {
  const workflowBundle = await sourceBundle();
  if (env['ROLE'] === 'workflows') return await workflowsHere(env, workflowBundle);
  const worker = await workerByEnv(env, { workflowBundle, shutdownGrace: 200 });
  return { stop: () => worker.shutdown() };
}

async function workflowsHere(
  env: Readonly<Record<string, string>>,
  bundle: WorkflowBundle,
): Promise<{ stop(): Promise<void> }> {
  const worker = await workflowsOnly(env, bundle);
  const ended = worker.run();
  return {
    stop: async () => {
      worker.shutdown();
      await ended;
      await worker.options.connection?.close();
    },
  };
}

async function failed(child: ChildProcess): Promise<never> {
  const [code] = (await once(child, 'exit')) as [number | null];
  throw new Error(`the worker process ended with ${code} before it was ready`);
}

async function writeBundle(): Promise<string> {
  const bundle = await sourceBundle();
  const path = join(tmpdir(), `perdure-bundle-${process.pid}.js`);
  await writeFile(path, 'code' in bundle ? bundle.code : '');
  return path;
}
