import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import {
  type MemoryOptions,
  type Reaction,
  approve,
  deny,
  replyCall,
  replyText,
  runInMemory,
  scriptedModel,
} from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

const bank = new Map<string, string>();
const desk = defineAgent({
  name: 'desk',
  instructions: 'You run the order desk.',
  model: 'demo',
  tools: [
    defineTool({
      name: 'refund',
      description: 'Refunds an order.',
      input: z.object({ order: z.number().int(), euros: z.number().positive() }),
      effect: 'keyed',
      describe: ({ order, euros }) => `refund ${euros} € to order ${order}`,
      execute({ order, euros }, { idempotencyKey }) {
        bank.set(idempotencyKey, `${euros} € to order ${order}`);
        return `refunded ${bank.get(idempotencyKey)}`;
      },
    }),
  ],
  rules: [{ tool: 'refund', where: { op: 'over', path: 'euros', value: 50 }, then: 'ask' }],
  limits: { steps: 10, costUsd: 0.5 },
});

describe('a list of replies', () => {
  const price = { input: 1e6, cachedInput: 1e6, output: 1e6 };
  test.each([
    ['demo', undefined, 0],
    ['a-model-of-ours', undefined, 0],
    ['gpt-4.1-mini', undefined, (10 * 0.4 + 5 * 1.6) / 1e6],
    ['a-model-of-ours', { 'a-model-of-ours': { ...scriptedModel([replyText('Hi.')]), price } }, 15],
  ])('has the price of the model %s, so its costs have a limit', async (model, models, costUsd) => {
    const agent = defineAgent({
      name: 'clerk',
      instructions: 'Help.',
      model,
      limits: { costUsd: 50 },
    });
    const replies = models === undefined ? { model: [replyText('Hi.')] } : { models };
    const { outcome } = await runInMemory(agent, { message: 'Hello', ...replies });
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Hi.' });
    expect(outcome.usage.costUsd).toBeCloseTo(costUsd, 9);
  });
});

test('an agent as in README.md asks above 50 €, and not below', async () => {
  const options = { message: 'Refund order 17' };
  const small = await runInMemory(desk, {
    ...options,
    model: [replyCall('refund', { order: 17, euros: 20 }), replyText('Refunded.')],
  });
  expect([small.outcome.status, small.requests]).toEqual(['completed', []]);
  expect(small.effects).toMatchObject([{ result: 'refunded 20 € to order 17' }]);
  const model = [replyCall('refund', { order: 17, euros: 80 }), replyText('Refunded.')];
  const on = (refund: Reaction): NonNullable<MemoryOptions['on']> => ({ request: { refund } });
  const approved = await runInMemory(desk, { ...options, model, on: on(approve({ by: 'ann' })) });
  expect(approved.requests).toMatchObject([{ tool: 'refund', summary: 'refund 80 € to order 17' }]);
  expect(approved.effects).toMatchObject([{ input: { order: 17, euros: 80 } }]);
  const denied = await runInMemory(desk, { ...options, model, on: on(deny({ note: 'no' })) });
  expect(denied.effects).toEqual([]);
  expect(denied.outcome).toMatchObject({ status: 'completed', answer: 'Refunded.' });
});
