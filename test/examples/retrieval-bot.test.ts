import { afterAll, beforeAll, expect, test } from 'vitest';
import { replyText } from '../../src/testing/replies.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
beforeAll(async () => {
  example = await startExample('retrieval-bot');
});
afterAll(async () => await example.close());

test('the bot answers from documents, and gets each document once in a conversation', async () => {
  const { rig, stub } = example;
  stub.script(replyText('For 30 days (terms.md).'), replyText('Three days (terms.md).'));
  const message = 'How long may I return a kettle?';
  const handle = await rig.start({ agent: 'helpdesk', message, open: true });
  expect(await outcomeOf(handle, 1)).toMatchObject({ answer: 'For 30 days (terms.md).' });
  await ask(handle, 'And its delivery, before I return the kettle?');
  expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'Three days (terms.md).' });
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  const { projection } = await rig.end(handle);
  const found = projection.messages.flatMap((one) =>
    one.role === 'user' && one.origin === 'retrieved' ? [one.document?.id] : [],
  );
  expect(found).toEqual(['returns', 'kettle']);
  const [first] = stub.requests;
  expect(first?.messages[2]?.content).toContain('id="returns" source="terms.md"');
  expect(first?.messages[2]?.content).toContain('within 30 days');
  stub.assertConsumed();
});
