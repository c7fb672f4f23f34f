import { afterAll, beforeAll, expect, test } from 'vitest';
import { replyText } from '../../src/testing/replies.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
beforeAll(async () => {
  example = await startExample('memory-bot');
});
afterAll(async () => await example.close());

test('the bot remembers the conversation after its worker was restarted', async () => {
  const { rig, stub } = example;
  stub.script(replyText('Hello Ann!'), replyText('Stamps.'));
  const handle = await rig.start({ agent: 'bot', message: 'I am Ann', open: true });
  expect(await outcomeOf(handle, 1)).toMatchObject({ status: 'completed', answer: 'Hello Ann!' });
  await example.restart();
  await ask(handle, 'What do I collect?');
  expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'Stamps.', steps: 1 });
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  const { outcome } = await rig.end(handle);
  expect(outcome).toMatchObject({ status: 'completed', reason: 'closed', steps: 2 });
  const [first, second] = stub.requests.map(({ messages }) => messages);
  expect(second?.map(({ content }) => content)).toEqual([
    expect.stringContaining('friendly companion'),
    'I am Ann',
    'Hello Ann!',
    'What do I collect?',
  ]);
  expect(second?.slice(0, 2)).toEqual(first);
  expect(stub.requests[1]?.body).toMatchObject({ temperature: 0.7 });
  expect(stub.requests[1]?.body).not.toHaveProperty('tools');
  stub.assertConsumed();
});
