import type { RunningWorker, WorkerOptions } from './worker/create-worker.js';

/**
 * Starts a worker and resolves when it polls; with a `deployment`, when its build is the current one.
 * Rejects with a `NoServerError` if no server answers, with a `SdkVersionError` if the process has two
 * copies of Temporal's SDK, and with a `DeploymentError` if the build cannot be made the current one.
 *
 * Importing this function does not load Temporal's native worker; the first call does.
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
