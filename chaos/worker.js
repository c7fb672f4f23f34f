import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';

// A worker process of the chaos run. It loads only the built package, as a user's program does, so
// it is up again soon after each kill.
const entry = async (name) => await import(`${process.env.PACKAGE}/${name}.js`);
const { createWorker, defineAgent, defineConfig, defineTool } = await entry('index');
const { defineGraph, planAndExecute, text } = await entry('graphs');
const { withFaults } = await entry('testing');

const { ADDRESS, QUEUE, BUNDLE, LEDGER, SEGMENT_STEPS, FAULTS } = process.env;
const input = z.object({ at: z.string(), part: z.number(), note: z.string().optional() });

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
/** Side effects need a person's approval. */
const rules = [
  { tool: 'pay', then: 'ask' },
  { tool: 'put', then: 'ask' },
];

/** Asks the model twice, and decides as it said the second time. */
const decide = async ({ model }) => {
  await model.call({ instructions: 'Think first.' });
  const { text: answer, calls } = await model.call();
  return calls.length > 0 ? { calls } : { answer };
};

/** Posts from a node of a graph, as a tool does. */
const postFrom = async (s, part, { idempotencyKey, signal }) =>
  await post(
    'put',
    { at: s.at, part },
    { idempotencyKey, signal, call: { scheduledAt: Date.now() } },
  );

const base = { instructions: 'Do what you are told.', model: 'stub', tools };
const helper = defineAgent({ name: 'helper', ...base });

const walker = defineGraph({
  name: 'walker',
  state: z.object({
    message: z.string().default(''),
    at: z.string().default(''),
    task: z.string().default(''),
    parts: z.array(z.number()).default([]),
    results: z.array(z.object({ ok: z.boolean(), value: z.string().optional() })).default([]),
    helped: z.string().default(''),
    answer: z.string().default(''),
  }),
  messageTo: 'message',
  answerFrom: 'answer',
  tools: [pay],
  nodes: ({ run, each, confirm, tool: call, agent }) => ({
    load: run({
      attempts: 50,
      run: async (s, context) => {
        const [, number, message] = /run (\d+) message (\d+)/.exec(s.message);
        const at = `${number}/${message}/w`;
        await postFrom({ at }, 0, context);
        const task = `run ${number} message ${message} steps 2 as helper`;
        return {
          at,
          task,
          parts: [1, 2, 3, 4],
          answer: `answer to run ${number} message ${message} [`,
        };
      },
    }),
    all: each({
      over: (s) => s.parts,
      run: async (s, part, context) => await postFrom(s, part, context),
      atOnce: 2,
      attempts: 50,
      save: 'results',
    }),
    sure: confirm({ show: (s) => text`Pay for ${s.at}?` }),
    pay: call({ tool: pay, arguments: (s) => ({ at: s.at, part: 9 }) }),
    help: agent({ agent: helper, message: (s) => text`${s.task}`, save: 'helped' }),
    finish: run({
      attempts: 50,
      run: async (s, context) => {
        await postFrom(s, 10, context);
        if (s.results.length !== 4 || s.results.some(({ ok }) => !ok)) {
          return { answer: `wrong results: ${JSON.stringify(s.results)}` };
        }
        return { answer: s.answer };
      },
    }),
  }),
}).wire({
  start: 'load',
  edges: {
    load: 'all',
    all: 'sure',
    sure: { yes: 'pay', no: 'finish' },
    pay: { done: 'help', failed: 'help' },
    help: { done: 'finish', stopped: 'finish', failed: 'finish' },
    finish: 'end',
  },
});

/** Posts once for each tick of a schedule, and takes longer than a tick at times. */
const ticker = defineGraph({
  name: 'ticker',
  state: z.object({ message: z.string().default(''), answer: z.string().default('') }),
  messageTo: 'message',
  answerFrom: 'answer',
  nodes: ({ run }) => ({
    post: run({
      attempts: 50,
      run: async (_, context) => {
        await pause(10 * Number.parseInt(context.idempotencyKey.slice(0, 2), 16));
        await postFrom({ at: `tick/${context.run.id}` }, 0, context);
        return { answer: 'posted' };
      },
    }),
  }),
}).wire({ start: 'post', edges: { post: 'end' } });

const config = defineConfig({
  agents: [
    defineAgent({ name: 'chaos', ...base }),
    defineAgent({ name: 'capped', ...base, limits: { steps: 2 }, onLimit: 'compose' }),
    defineAgent({ name: 'careful', ...base, rules }),
    defineAgent({ name: 'decider', ...base, decide }),
    planAndExecute({ name: 'planner', ...base, rules: [{ tool: 'pay', then: 'ask' }] }),
    // Its prompt is summarized every few steps.
    defineAgent({ name: 'shrinker', ...base, model: 'small' }),
    helper,
    walker,
    ticker,
  ],
  models: { small: { window: 1_200 } },
});
const worker = await createWorker({
  config: withFaults(config, JSON.parse(FAULTS)),
  address: ADDRESS,
  taskQueue: QUEUE,
  workflowBundle: { codePath: BUNDLE },
  segment: { steps: Number(SEGMENT_STEPS), bytes: 2 ** 21 },
  shutdownGrace: 500,
});
process.send?.('ready');
process.once('disconnect', () => process.exit());
await worker.stopped;
