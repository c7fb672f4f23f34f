// A perdure worker as a process of its own. Told by its environment; `kit/child.ts` starts it.
import { defineConfig } from '../../src/config.js';
import { installRuntime } from '../../src/runtime.js';
import { createWorker } from '../../src/worker.js';
import { serveAsChild, tellParent } from '../kit/child-side.js';
import { benchAgents } from './agents.js';
import { scriptedModel } from './models.js';

installRuntime('ERROR');
const { env } = process;
const worker = await createWorker({
  config: defineConfig({
    agents: benchAgents({ ledgerUrl: env['LEDGER'] ?? '', tell: tellParent }),
    models: { scripted: scriptedModel },
  }),
  address: env['ADDRESS'] ?? '',
  taskQueue: env['QUEUE'] ?? '',
  workflowBundle: { codePath: env['BUNDLE'] ?? '' },
  env,
});
await serveAsChild(worker);
