// A worker whose model has a shared rate, in its own process. `measure.ts` starts it.
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createWorker } from '../../src/worker/create-worker.js';
import { installRuntime } from '../../src/worker/log.js';
import { serveAsChild } from '../kit/child-side.js';

installRuntime('ERROR');
const { env } = process;
const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ at: z.number() }),
  effect: 'read',
  execute: ({ at }) => `seen ${at}`,
});
const walker = defineAgent({
  name: 'walker',
  instructions: 'walk',
  model: 'm',
  tools: [look],
  limits: { steps: 10_000, toolCalls: 10_000 },
});
const requests = Number(env['REQUESTS']);
const worker = await createWorker({
  config: defineConfig({
    agents: [walker],
    models: { m: { baseUrl: env['BASE_URL'] ?? '', rate: { requests, per: '1 minute' } } },
  }),
  address: env['ADDRESS'] ?? '',
  taskQueue: 'rate',
  env,
});
await serveAsChild(worker);
