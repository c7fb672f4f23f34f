// A worker as a process of its own, so that SIGKILL is real. Told by environment, tells `ready`.
import { NativeConnection, Worker } from '@temporalio/worker';
import { installRuntime } from '../../src/worker/runtime.js';
import { workerByEnv } from './worker-by-env.js';

installRuntime('ERROR');
const { env } = process;
const address = env['ADDRESS'] ?? '';
const taskQueue = env['QUEUE'] ?? '';
const workflowBundle = { codePath: env['BUNDLE'] ?? '' };

/** Runs workflow code and no activity: whatever a run does is then done by another process. */
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
