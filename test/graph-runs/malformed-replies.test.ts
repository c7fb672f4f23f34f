import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import type { Model, ModelReply } from '../../src/models/model.js';
import { runInMemory } from '../../src/testing.js';
import { useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

const agent = defineAgent({ name: 'desk', instructions: 'Help.', model: 'local' });
const graph = defineGraph({
  name: 'writer',
  model: 'local',
  state: z.object({ text: z.string(), draft: z.string().optional() }),
  messageTo: 'text',
  answerFrom: 'draft',
  nodes: ({ run }) => ({
    write: run({
      run: async (s, { generate }) => ({ draft: await generate({ message: s.text }) }),
    }),
  }),
}).wire({ start: 'write', edges: { write: 'end' } });

const good: ModelReply = {
  text: 'Done.',
  calls: [],
  finish: 'stop',
  usage: { inputTokens: 7, outputTokens: 3, cachedTokens: 0 },
};

/** A model of a program, whose reply no type has checked. */
const modelWith = (reply: unknown): Model => ({
  call: async () => await Promise.resolve(reply as ModelReply),
});

describe.for([
  ['an agent', agent],
  ['a function of a node', graph],
] as const)('a malformed reply to %s', ([, asking]) => {
  test.for([
    [undefined, 'reply: missing, expected an object'],
    [{ ...good, text: undefined }, 'reply.text: missing, expected a string'],
    [{ ...good, calls: undefined }, 'reply.calls: missing, expected a list'],
    [
      { ...good, calls: [{ name: 'pay', arguments: {} }] },
      'reply.calls[0].arguments: expected a string, got {}',
    ],
    [
      { ...good, finish: 'end' },
      'reply.finish: expected one of stop, calls, length, filtered, refused, got "end"',
    ],
    [{ ...good, requestId: 7 }, 'reply.requestId: expected a string, got 7'],
    [{ ...good, provider: { from: 'local' } }, 'reply.provider.items: missing, expected a list'],
  ] as const)('names the model and the field: $1', async ([reply, problem]) => {
    const failed = runInMemory(asking, { message: 'Go', model: modelWith(reply) });
    await expect(failed).rejects.toThrow(`blocked: provider: model "local": ${problem}; correct`);
  });

  test.for(
    [
      { inputTokens: 7, outputTokens: 3 },
      { inputTokens: -1, outputTokens: 3, cachedTokens: 0 },
      { inputTokens: 7, outputTokens: '3', cachedTokens: 0 },
      null,
      7,
    ].map((usage) => ({ usage })),
  )('has an estimated usage for %j', async ({ usage }) => {
    const model = modelWith({ ...good, usage });
    const { outcome } = await runInMemory(asking, { message: 'Go', model });
    expect(outcome).toMatchObject({ answer: 'Done.', usage: { cachedTokens: 0, estimated: true } });
  });

  test.for([
    { reasoningTokens: -1 },
    { cacheWriteTokens: 'many' },
    { costUsd: Number.NaN },
    { estimated: false },
  ])('has its counts without the optional part %j', async (part) => {
    const model = modelWith({ ...good, usage: { ...good.usage, ...part } });
    const { outcome } = await runInMemory(asking, { message: 'Go', model });
    expect(outcome.usage).toEqual({ ...good.usage, costUsd: null });
  });
});
