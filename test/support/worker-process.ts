// A worker as a process of its own, so that SIGKILL is real. Told by environment, tells `ready`.
import { defineConfig } from '../../src/config.js';
import type { OnLimit } from '../../src/core/definition.js';
import { installRuntime } from '../../src/runtime.js';
import { createWorker } from '../../src/worker.js';
import { crashAgent } from './crash-agent.js';

installRuntime('ERROR');
const { env } = process;
const steps = Number(env['STEPS'] ?? 0);
const agent = crashAgent(env['LEDGER'] ?? '', {
  ...(steps > 0 && { limits: { steps } }),
  ...(env['ON_LIMIT'] && { onLimit: env['ON_LIMIT'] as OnLimit }),
});
const worker = await createWorker({
  config: defineConfig({ agents: [agent] }),
  address: env['ADDRESS'] ?? '',
  taskQueue: env['QUEUE'] ?? '',
  workflowBundle: { codePath: env['BUNDLE'] ?? '' },
  env,
  ...(env['CACHE_BYTES'] && { transcriptCacheBytes: Number(env['CACHE_BYTES']) }),
});
process.send?.('ready');
await worker.stopped;
