import { DefaultLogger } from '@temporalio/worker';
import { pino, type LogFn } from 'pino';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineConfig } from '../../src/config.js';
import type { Model } from '../../src/models/model.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createWorker } from '../../src/worker/create-worker.js';

// A worker in its own process, with metrics for Prometheus and logs written by pino.

const { env } = process;
const log = pino();
const methods: Readonly<Record<string, LogFn>> = {
  INFO: log.info.bind(log),
  WARN: log.warn.bind(log),
  ERROR: log.error.bind(log),
};

const look = defineTool({
  name: 'look',
  description: 'looks',
  effect: 'read',
  input: z.object({}),
  execute: async (_, context) => {
    context.log(`looked with ${env['MY_KEY']}`, { key: env['MY_KEY'] ?? '' });
    return 'a view';
  },
});
let replies = 0;
const model = {
  price: { input: 1, cachedInput: 1, output: 1 },
  call: async () => {
    replies += 1;
    const usage = { inputTokens: 100, outputTokens: 20, cachedTokens: 0 };
    const calls = replies === 1 ? [{ name: 'look', arguments: '{}' }] : [];
    const finish = replies === 1 ? ('calls' as const) : ('stop' as const);
    return { ...replyText('a mountain'), calls, finish, usage };
  },
};

const aide = defineAgent({ name: 'aide', description: 'helps', instructions: 'x', model: 'm' });
const asking: Model = {
  call: async ({ messages }) =>
    messages.length === 1 ? replyCall('aide', { message: 'go' }) : replyText('a mountain'),
};

const worker = await createWorker({
  config: defineConfig({
    agents: [
      defineAgent({ name: 'scout', instructions: 'x', model: 'm', tools: [look] }),
      aide,
      defineAgent({ name: 'lead', instructions: 'x', model: 'asking', agents: [aide] }),
      defineAgent({
        name: 'thinker',
        instructions: 'x',
        model: 'm',
        decide: async ({ model: own }) => {
          await own.call();
          return { answer: (await own.call({ instructions: 'again' })).text };
        },
      }),
    ],
    models: { m: model, asking },
  }),
  address: env['ADDRESS'] ?? '',
  taskQueue: env['QUEUE'] ?? '',
  secrets: ['MY_KEY'],
  runtime: {
    logger: new DefaultLogger('INFO', ({ level, message, meta }) => {
      methods[level]?.(meta, message);
    }),
    telemetryOptions: { metrics: { prometheus: { bindAddress: env['METRICS'] ?? '' } } },
  },
});
process.stdout.write('ready\n');
process.once('SIGTERM', () => void worker.shutdown());
await worker.stopped;
