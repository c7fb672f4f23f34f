import type { RunningWorker, WorkerOptions } from './worker/create-worker.js';

/**
 * Starts a worker and resolves when it polls. Temporal's native worker is loaded by the call, not by
 * the door: a configuration comes through it too, in commands that need no worker.
 *
 * @example
 * ```ts
 * import { createWorker, defineAgent, defineConfig } from 'perdure';
 *
 * const clerk = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'demo' });
 * const worker = await createWorker({ config: defineConfig({ agents: [clerk] }) });
 * process.once('SIGTERM', () => void worker.shutdown());
 * await worker.stopped;
 * ```
 */
export async function createWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { createWorker: create } = await import('./worker/create-worker.js');
  return await create(options);
}
