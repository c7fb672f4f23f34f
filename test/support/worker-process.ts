// A worker in its own process, so that SIGKILL is real. Configured by its environment; reports
// `ready`.
import { NativeConnection, Worker } from '@temporalio/worker';
import { installRuntime } from '../../src/worker/runtime.js';
import { workerByEnv } from './worker-by-env.js';

installRuntime('ERROR');
const { env } = process;
const address = env['ADDRESS'] ?? '';
const taskQueue = env['QUEUE'] ?? '';
const workflowBundle = { codePath: env['BUNDLE'] ?? '' };

/** Runs workflow code and no activities, so that another process executes them. */
async function workflowsOnly(): Promise<void> {
  const connection = await NativeConnection.connect({ address });
  const loadAgent = (): Promise<never> => Promise.reject(new Error('no agent is here'));
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowBundle,
    activities: { loadAgent },
    enableNonLocalActivities: false,
  });
  process.send?.('ready');
  await worker.run();
}

async function whole(): Promise<void> {
  const worker = await workerByEnv(env, { workflowBundle });
  process.send?.('ready');
  await worker.stopped;
}

await (env['ROLE'] === 'workflows' ? workflowsOnly() : whole());
