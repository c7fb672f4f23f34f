// A perdure worker in its own process, configured by its environment. `kit/child.ts` starts it.
import { defineConfig } from '../../src/config.js';
import { installRuntime } from '../../src/worker/log.js';
import { createWorker } from '../../src/worker/create-worker.js';
import { serveAsChild, tellParent } from '../kit/child-side.js';
import { benchAgents } from './agents.js';
import { benchGraphs, planningModel } from './graphs.js';
import { extractingModel, longRunModel, scriptedModel, speakingModel } from './models.js';

/** Most rows measure the cost of one segment; SEGMENTS=default leaves the size to the engine. */
const ONE_SEGMENT = { steps: 10_000, bytes: 64 * 1024 * 1024 };
/** In tokens; about a dozen steps of 2 kB messages fit between two compactions. */
const WINDOW = 24_000;

installRuntime('ERROR');
const { env } = process;
const longRun = longRunModel(tellParent);
const worker = await createWorker({
  config: defineConfig({
    agents: [...benchAgents({ ledgerUrl: env['LEDGER'] ?? '', tell: tellParent }), ...benchGraphs],
    models: {
      scripted: scriptedModel,
      extracting: extractingModel,
      planning: planningModel,
      speaking: speakingModel,
      streamed: { stream: true },
      unbounded: longRun,
      bounded: { ...longRun, window: WINDOW },
    },
  }),
  address: env['ADDRESS'] ?? '',
  taskQueue: env['QUEUE'] ?? '',
  workflowBundle: { codePath: env['BUNDLE'] ?? '' },
  ...(env['SEGMENTS'] !== 'default' && { segment: ONE_SEGMENT }),
  ...(env['PROMPT_BYTES'] !== undefined && { transcriptCacheBytes: Number(env['PROMPT_BYTES']) }),
  ...(env['CACHED'] !== undefined && { maxCachedWorkflows: Number(env['CACHED']) }),
  ...(env['LIVE'] !== undefined && { live: {} }),
  env,
});
await serveAsChild(worker);
