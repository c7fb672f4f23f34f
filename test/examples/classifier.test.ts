import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Classification } from '../../src/output/classes/classes.js';
import { replyText, type Reply } from '../../src/testing/replies.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
beforeAll(async () => {
  example = await startExample('classifier');
});
afterAll(async () => await example.close());

/** A reply of one token, with its alternatives. */
function token(text: string, top: Readonly<Record<string, number>>): Reply {
  return replyText(text, { finish: 'length', logprobs: [{ token: text, top }] });
}

test('the classifier reports the probability of each class, from the logprobs of one call', async () => {
  const { rig, stub } = example;
  stub.script(token('B', { B: 0.6, A: 0.2, b: 0.1, The: 0.1, C: 0 }));
  const { outcome } = await rig.run({ agent: 'ticket', message: 'I was charged twice' });
  expect(outcome).toMatchObject({ status: 'completed', answer: 'something about money', steps: 1 });
  const output = outcome.output as unknown as Classification;
  const probabilities = output.classes.map(({ probability }) => probability);
  expect(probabilities[0]).toBeCloseTo(0.2 / 0.9, 5);
  expect(probabilities[1]).toBeCloseTo(0.7 / 0.9, 5);
  expect(output.outside).toBeCloseTo(0.1, 5);
  expect(output.unseen).toContain('spam');
  const asked = stub.requests.at(-1);
  expect(asked?.body).toMatchObject({ logprobs: true, top_logprobs: 9, temperature: 0 });
  expect(asked?.messages.at(-1)?.content).toContain('B = something about money');
  stub.assertConsumed();
});

test('the classifier retries if the reply is not a class', async () => {
  const { rig, stub } = example;
  stub.script(token('Well', { Well: 0.99 }), token('D', { D: 0.97, A: 0.01 }));
  const { outcome, projection } = await rig.run({ agent: 'ticket', message: 'cheap watches' });
  expect(outcome).toMatchObject({ answer: 'spam', usage: { inputTokens: 20 } });
  expect(projection.state?.transcript.messages).toHaveLength(2);
  stub.assertConsumed();
});

test('the classifier refuses a server without probabilities, and names the fix', async () => {
  const { rig, stub } = example;
  stub.script(replyText('A'));
  const { outcome } = await rig.run({ agent: 'ticket', message: 'it crashes' });
  expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
  expect(outcome.error).toContain('classify(classes, { samples: 10 })');
  stub.assertConsumed();
});
