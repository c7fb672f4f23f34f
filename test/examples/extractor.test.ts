import { afterAll, beforeAll, expect, test } from 'vitest';
import { replyText } from '../../src/testing/replies.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
beforeAll(async () => {
  example = await startExample('extractor');
});
afterAll(async () => await example.close());

const kettles = { item: 'kettle', count: 2, euros: 40 };
const right = { lines: [kettles, { item: 'cable', count: 1, euros: 9 }], totalEuros: 89 };
const wrong = { ...right, lines: [kettles], due: null };

test('the extractor sends a wrong sum back, and returns the corrected invoice', async () => {
  const { rig, stub } = example;
  const answer = JSON.stringify({ ...right, due: null });
  stub.script(replyText(JSON.stringify(wrong)), replyText(answer));
  const { outcome, projection } = await rig.run({ agent: 'invoice', message: 'two kettles …' });
  expect(outcome).toMatchObject({
    status: 'completed',
    reason: 'answer',
    output: right,
    steps: 1,
    usage: { inputTokens: 20, outputTokens: 10 },
  });
  const [first, second] = stub.requests;
  expect(first?.body['response_format']).toMatchObject({ type: 'json_schema' });
  const repair = String(second?.messages.at(-1)?.content);
  expect(repair).toContain('attempt 1 of 3');
  expect(repair).toContain('totalEuros: expected 80 € as the sum of the lines, got 89');
  expect(projection.state?.transcript.messages.map(({ text }) => text)).toEqual([
    'two kettles …',
    answer,
  ]);
  stub.assertConsumed();
});

test('the extractor returns no invoice instead of a wrong one', async () => {
  const { rig, stub } = example;
  const texts = [wrong, wrong, wrong].map((invoice) => replyText(JSON.stringify(invoice)));
  stub.script(...texts);
  const { outcome } = await rig.run({ agent: 'invoice', message: 'three times wrong' });
  expect(outcome).toMatchObject({ status: 'failed', reason: 'invalid_output', output: null });
  expect(outcome.error).toContain('80 € as the sum of the lines');
  expect(outcome.usage.inputTokens).toBe(30);
  stub.assertConsumed();
});
