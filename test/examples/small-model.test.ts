import { afterAll, beforeAll, expect, test } from 'vitest';
import { replyText, type Reply } from '../../src/testing/replies.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
beforeAll(async () => {
  example = await startExample('small-model', undefined, { enforces: false });
});
afterAll(async () => await example.close());

function decide(decision: object, before = ''): Reply {
  return replyText(before + JSON.stringify({ decision }));
}

test('the small model decides by JSON, with tools in the prompt and not in the request', async () => {
  const { rig, stub } = example;
  stub.script(
    decide({ action: 'lamp', arguments: { room: 'kitchen' } }),
    decide({ action: 'turn_lamp', arguments: { room: 'kitchen', on: true } }, 'Sure!\n'),
    replyText('Now the lamp is on.'),
    decide({ action: 'answer', answer: 'I turned the lamp in the kitchen on.' }),
  );
  const { outcome, projection } = await rig.run({ agent: 'home', message: 'It is dark' });
  expect(outcome).toMatchObject({
    status: 'completed',
    answer: 'I turned the lamp in the kitchen on.',
    steps: 3,
    toolCalls: 2,
    usage: { inputTokens: 40, costUsd: 0 },
  });
  const [first, , third, fourth] = stub.requests;
  expect(first?.body).not.toHaveProperty('tools');
  expect(first?.body).toMatchObject({
    model: 'qwen2.5-1.5b-instruct',
    response_format: { type: 'json_schema', json_schema: { name: 'decision' } },
  });
  expect(first?.messages[0]?.content).toContain('- lamp: Returns whether the lamp');
  expect(third?.messages.at(-1)).toEqual({
    role: 'user',
    content: 'Result of turn_lamp:\nthe lamp in the kitchen is on',
  });
  expect(fourth?.messages.at(-1)?.content).toContain('attempt 1 of 3');
  expect(projection.state?.transcript.messages.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'assistant',
    'tool',
    'assistant',
  ]);
  stub.assertConsumed();
});
