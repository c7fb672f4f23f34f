import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkedReply } from '../../src/activities/model/checked-reply.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import type { ModelPrice } from '../../src/core/definition/definition.js';
import type { Model, ModelReply, ModelRequest, ModelUsage } from '../../src/models/model.js';
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

const usage: ModelUsage = { inputTokens: 7, outputTokens: 3, cachedTokens: 0 };
const good: ModelReply = { text: 'Done.', calls: [], finish: 'stop', usage };

/** A model of a program, whose reply no type has checked. */
const modelWith = (reply: unknown): Model => ({
  call: async () => await Promise.resolve(reply as ModelReply),
});

/** A reply and a model whose members are on their prototypes. */
class OwnReply implements ModelReply {
  get text(): string {
    return good.text;
  }
  get calls(): ModelReply['calls'] {
    return good.calls;
  }
  get finish(): ModelReply['finish'] {
    return good.finish;
  }
  get usage(): ModelUsage {
    return usage;
  }
}
class Own implements Model {
  get price(): ModelPrice {
    return { input: 1_000_000, cachedInput: 1_000_000, output: 1_000_000 };
  }
  async call(): Promise<ModelReply> {
    return await Promise.resolve(this.reply());
  }
  private reply(): ModelReply {
    return new OwnReply();
  }
}

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
    const { outcome, modelRequests } = await runInMemory(asking, {
      message: 'Go',
      model: modelWith(reply),
    });
    expect(outcome).toMatchObject({ status: 'failed' });
    expect(JSON.stringify(outcome)).toContain(
      JSON.stringify(`model "local": ${problem}; correct the \`Model\``).slice(1, -1),
    );
    // Another call would be paid for, and end in the same way.
    expect(modelRequests).toHaveLength(1);
  });

  test('may have null where a field may be absent', async () => {
    const nulls = { usage: null, requestId: null, logprobs: null, provider: null, dropped: null };
    // A run can do without these, and the reply was paid for.
    const wrong = { logprobs: [{ token: 'Done', logprob: 0 }], dropped: 'store' };
    for (const given of [nulls, wrong]) {
      const { outcome, modelRequests } = await runInMemory(asking, {
        message: 'Go',
        model: modelWith({ ...good, ...given }),
      });
      expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.' });
      expect(modelRequests).toHaveLength(1);
    }
  });

  test('is not what the getters of an instance of a class give', async () => {
    const { outcome } = await runInMemory(asking, { message: 'Go', model: new Own() });
    expect(outcome).toMatchObject({ answer: 'Done.', usage: { ...usage, costUsd: 10 } });
  });

  test.for(
    [
      { inputTokens: 7, outputTokens: 3 },
      { inputTokens: -1, outputTokens: 3, cachedTokens: 0 },
      { inputTokens: 7, outputTokens: '3', cachedTokens: 0 },
      null,
      7,
    ].map((reported) => ({ usage: reported })),
  )('has an estimated usage for %j', async ({ usage: reported }) => {
    const model = modelWith({ ...good, usage: reported });
    const { outcome } = await runInMemory(asking, { message: 'Go', model });
    expect(outcome).toMatchObject({ answer: 'Done.', usage: { cachedTokens: 0, estimated: true } });
  });

  test.for([
    { reasoningTokens: -1 },
    { cacheWriteTokens: 'many' },
    { costUsd: Number.NaN },
    { estimated: false },
  ])('has its counts without the optional part %j', async (part) => {
    const model = modelWith({ ...good, usage: { ...usage, ...part } });
    const { outcome } = await runInMemory(asking, { message: 'Go', model });
    expect(outcome.usage).toEqual({ ...usage, costUsd: null });
  });
});

test('null in a call and in its safety checks counts as absent', () => {
  const call = { name: 'click', arguments: '{}' };
  const safety = [{ id: 's1', code: null, message: null }];
  const calls = [
    { ...call, safety: null },
    { ...call, safety },
  ] as unknown as ModelReply['calls'];
  const { calls: read } = checkedReply({ ...good, finish: 'calls', calls }, {
    model: 'local',
  } as ModelRequest);
  expect(read).toEqual([call, { ...call, safety: [{ id: 's1' }] }]);
});
