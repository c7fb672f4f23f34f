import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';

// A worker process of the chaos run. It loads only the built package, as a user's program does, so
// it is up again soon after each kill.
const { createWorker, defineAgent, defineConfig, defineTool } = await import(process.env.PACKAGE);

const { ADDRESS, QUEUE, BUNDLE, LEDGER, SEGMENT_STEPS } = process.env;
const input = z.object({ at: z.string(), part: z.number() });

async function post(tool, given, { idempotencyKey, call, signal }) {
  const at = `${given.at}/${given.part}`;
  const body = JSON.stringify({ tool, key: idempotencyKey, at, scheduledAt: call.scheduledAt });
  const response = await fetch(LEDGER, { method: 'POST', body, signal });
  if (!response.ok) throw new Error(`the ledger answered ${response.status}`);
  return await response.text();
}

const tool = (name, effect, rest = {}) =>
  defineTool({
    name,
    description: `${name}: posts to the ledger`,
    input,
    effect,
    heartbeat: 2_000,
    execute: (given, context) => post(name, given, context),
    ...rest,
  });

// Larger than what fits in a history, so that blobs are written and read.
const big = tool('big', 'read', {
  execute: async ({ at }) => `${at} `.repeat(9_000).slice(0, 90_000),
});
const pay = tool('pay', 'once', {
  // Faults can precede the payment too. The payment ignores the signal: a late payment has to reach
  // the ledger.
  execute: async (given, { idempotencyKey, call }) => {
    await pause(Number.parseInt(idempotencyKey.slice(0, 2), 16));
    return await post('pay', given, { idempotencyKey, call });
  },
  // Here, the ledger is the bank: half of the unknown outcomes can be looked up, the others need a
  // person. Once it denies a key, it refuses the key from then on.
  verify: async (key, { scheduledAt }) => {
    const body = JSON.stringify({ key, fence: scheduledAt });
    const found = await fetch(LEDGER, { method: 'POST', body }).then((answer) => answer.text());
    return found === 'unsure' ? undefined : { happened: found === 'yes' };
  },
});
const tools = [tool('look', 'read'), tool('put', 'keyed'), pay, big];
const base = { instructions: 'Do what you are told.', model: 'stub', tools };

const worker = await createWorker({
  config: defineConfig({
    agents: [
      defineAgent({ name: 'chaos', ...base }),
      defineAgent({ name: 'capped', ...base, limits: { steps: 2 }, onLimit: 'compose' }),
    ],
  }),
  address: ADDRESS,
  taskQueue: QUEUE,
  workflowBundle: { codePath: BUNDLE },
  segment: { steps: Number(SEGMENT_STEPS), bytes: 2 ** 21 },
  shutdownGrace: 500,
});
process.send?.('ready');
process.once('disconnect', () => process.exit());
await worker.stopped;
