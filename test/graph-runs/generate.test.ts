import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import { createStepEmitter } from '../../src/history/emit-steps.js';
import type { ModelPrice } from '../../src/core/definition/definition.js';
import {
  ModelError,
  type Model,
  type ModelReply,
  type ModelRequest,
} from '../../src/models/model.js';
import { resumeUpdate } from '../../src/workflows/messages/definitions.js';
import { expectKeptReplays } from '../support/replays.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';

let desk: Desk;
beforeEach(async () => {
  desk = await createDesk(await createMemoryRig());
});
afterEach(async () => await desk.close());
afterAll(async () => await expectKeptReplays());

const price = { input: 100_000, cachedInput: 100_000, output: 200_000 };

/** A model with these replies, which costs 2 dollars for 10 tokens of input, and its requests. */
function scripted(
  inputTokens: number,
  ...replies: (string | ModelError | Pick<ModelReply, 'text' | 'finish'>)[]
): Model & { readonly price: ModelPrice; readonly asked: ModelRequest[] } {
  const asked: ModelRequest[] = [];
  return {
    asked,
    price,
    call: async (request): Promise<ModelReply> => {
      asked.push(request);
      const reply = replies.shift() ?? 'over';
      if (reply instanceof ModelError) throw reply;
      const usage = { inputTokens, outputTokens: 5, cachedTokens: 0 };
      const ended = typeof reply === 'string' ? { text: reply, finish: 'stop' as const } : reply;
      return { ...ended, calls: [], usage };
    },
  };
}

const kind = z.object({ kind: z.enum(['bill', 'spam']) });

/** A graph that asks two models in one node. */
const sorter = defineGraph({
  name: 'sorter',
  state: z.object({
    text: z.string(),
    kind: z.enum(['bill', 'spam']).optional(),
    answer: z.string().optional(),
  }),
  messageTo: 'text',
  answerFrom: 'answer',
  nodes: ({ run }) => ({
    sort: run({
      run: async (s, { generate }) => {
        const sorted = await generate({
          model: 'small',
          instructions: 'Sort mails.',
          message: s.text,
          output: kind,
          settings: { temperature: 0 },
        });
        const answer = await generate({ model: 'large', message: `Answer the ${sorted.kind}.` });
        return { kind: sorted.kind, answer };
      },
    }),
  }),
}).wire({ start: 'sort', edges: { sort: 'end' } });

test('a run node calls models: typed, repaired, and counted by each price', async () => {
  const small = scripted(10, '{"kind":"letter"}', '{"kind":"bill"}');
  const large = { ...scripted(10, 'Paid.'), price: { ...price, input: 0, output: 1_000_000 } };
  await desk.work([sorter], { models: { small, large } });
  const { outcome, history } = await desk.run({ agent: 'sorter', message: 'Please pay' });
  expect(outcome).toMatchObject({
    status: 'completed',
    answer: 'Paid.',
    output: { kind: 'bill' },
    usage: { inputTokens: 30, outputTokens: 15, costUsd: 9 },
  });
  const [first, second] = small.asked;
  expect(first).toMatchObject({
    instructions: 'Sort mails.',
    messages: [{ role: 'user', text: 'Please pay' }],
    settings: { temperature: 0 },
    responseFormat: { name: 'answer' },
  });
  expect(second?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  const emit = createStepEmitter('run');
  const steps = (history.events ?? []).flatMap((event) => emit(decodeEvent(event)));
  expect(steps.filter(({ type }) => type === 'node-replied')).toMatchObject([
    { node: 'sort', model: 'small', text: '{"kind":"letter"}', usage: { inputTokens: 10 } },
    { node: 'sort', model: 'small', text: '{"kind":"bill"}', usage: { costUsd: 2 } },
    { node: 'sort', model: 'large', text: 'Paid.', usage: { costUsd: 5 } },
  ]);
});

test('the items of an each call a model, and their progress is emitted', async () => {
  const graph = defineGraph({
    name: 'items',
    state: z.object({
      list: z.array(z.number()).default([1, 2, 3]),
      results: z.array(z.json()).optional(),
    }),
    nodes: ({ each }) => ({
      all: each({
        over: (s) => s.list,
        atOnce: 1,
        run: async (_, item: number, { generate }) =>
          await generate({ model: 'small', message: `Item ${item}` }),
        save: 'results',
      }),
    }),
  }).wire({ start: 'all', edges: { all: { done: 'end', failed: 'end' } } });
  await desk.work([graph], { models: { small: scripted(10, 'one', 'two', 'three') } });
  const { outcome, history } = await desk.run({ agent: 'items', input: {} });
  expect(outcome).toMatchObject({
    output: { results: ['one', 'two', 'three'].map((value) => ({ ok: true, value })) },
    usage: { inputTokens: 30, costUsd: 6 },
    steps: 1,
  });
  const emit = createStepEmitter('run');
  const steps = (history.events ?? []).flatMap((event) => emit(decodeEvent(event)));
  expect(steps.filter(({ type }) => type === 'items-ended')).toEqual([
    { type: 'items-ended', node: 'all', done: 1, failed: 0, total: 3 },
    { type: 'items-ended', node: 'all', done: 2, failed: 0, total: 3 },
  ]);
});

test('a model call of a node beyond the budget ends the turn at the limit', async () => {
  const small = scripted(200, '{"kind":"bill"}');
  const large = scripted(10, 'Paid.');
  await desk.work([sorter], { models: { small, large } });
  const { outcome } = await desk.run({
    agent: 'sorter',
    message: 'Please pay',
    limits: { tokens: 220 },
  });
  expect(outcome).toMatchObject({ status: 'stopped', reason: 'tokens' });
  expect(outcome.usage).toMatchObject({ inputTokens: 200, outputTokens: 5 });
  expect(large.asked).toEqual([]);
});

test('a model that refuses its key blocks the node, and earlier replies are paid for once', async () => {
  const small = scripted(10, '{"kind":"bill"}');
  const refused = new ModelError('wrong key', { kind: 'credentials', type: 'invalid_api_key' });
  const large = scripted(10, refused, 'Paid.');
  await desk.work([sorter], { models: { small, large } });
  const handle = await desk.rig.start({ agent: 'sorter', message: 'Please pay' });
  const status = await desk.statusWhere(handle, ({ status: name }) => name === 'blocked');
  expect(status).toMatchObject({
    reason: 'credentials',
    usage: { inputTokens: 10, outputTokens: 5, costUsd: 2 },
  });
  await handle.executeUpdate(resumeUpdate, { args: [{}] });
  const { outcome } = await desk.end(handle);
  expect(outcome).toMatchObject({
    answer: 'Paid.',
    usage: { inputTokens: 20, outputTokens: 10, costUsd: 4 },
  });
  expect([small.asked.length, large.asked.length]).toEqual([1, 2]);
});

test.each([
  ['length', '{"kind":"bi', 'was cut at the output limit; raise settings.maxOutputTokens'],
  ['filtered', '', "was withheld by the provider's content filter"],
  ['refused', 'I cannot do that.', 'is a refusal: I cannot do that.'],
] as const)(
  'a reply that ends as %s fails the node, and is not requested again',
  async (finish, text, why) => {
    const small = scripted(10, { text, finish }, '{"kind":"bill"}');
    await desk.work([sorter], { models: { small, large: scripted(10, 'Paid.') } });
    const { outcome } = await desk.run({ agent: 'sorter', message: 'Please pay' });
    expect(outcome).toMatchObject({
      status: 'failed',
      usage: { inputTokens: 10, outputTokens: 5 },
    });
    expect(outcome.error).toContain(`the reply of model "small" ${why}`);
    expect(small.asked).toHaveLength(1);
  },
);

test('a function may catch that a reply without `output` was cut', async () => {
  const graph = defineGraph({
    name: 'brief',
    state: z.object({ answer: z.string().optional() }),
    answerFrom: 'answer',
    nodes: ({ run }) => ({
      ask: run({
        run: async (_, { generate }) => {
          const answer = await generate({ model: 'small', message: 'Tell all.' }).catch(
            ({ details }: ModelError) => details.type,
          );
          return { answer };
        },
      }),
    }),
  }).wire({ start: 'ask', edges: { ask: 'end' } });
  const small = scripted(10, { text: 'Once upon', finish: 'length' });
  await desk.work([graph], { models: { small } });
  const { outcome } = await desk.run({ agent: 'brief', message: 'x' });
  expect(outcome).toMatchObject({ status: 'completed', answer: 'truncated' });
});
