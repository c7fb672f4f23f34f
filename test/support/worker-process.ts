// A worker as a process of its own, so that SIGKILL is real. Told by environment, tells `ready`.
import { installRuntime } from '../../src/worker/log.js';
import { workerByEnv, workflowsOnly } from './worker-by-env.js';

installRuntime('ERROR');
const { env } = process;
const workflowBundle = { codePath: env['BUNDLE'] ?? '' };

async function onlyWorkflows(): Promise<void> {
  const worker = await workflowsOnly(env, workflowBundle);
  process.send?.('ready');
  await worker.run();
}

async function whole(): Promise<void> {
  const worker = await workerByEnv(env, { workflowBundle });
  process.send?.('ready');
  await worker.stopped;
}

await (env['ROLE'] === 'workflows' ? onlyWorkflows() : whole());
