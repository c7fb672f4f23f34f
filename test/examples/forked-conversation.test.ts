import { afterAll, beforeAll, expect, test } from 'vitest';
import { whatIf } from '../../examples/forked-conversation/what-if.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { replyText } from '../../src/testing/replies.js';
import { clientOf } from '../support/clerk.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
let client: PerdureClient;
beforeAll(async () => {
  example = await startExample('forked-conversation');
  client = await clientOf(example.rig);
});
afterAll(async () => {
  await client.disconnect();
  await example.close();
});

test('a conversation continues in both ways, and the second run names its origin', async () => {
  const { stub } = example;
  stub.script(replyText('How?'), replyText('Oslo and Bergen.'), replyText('Along the fjord.'));
  const lines = await whatIf(client);
  const id = '(planner-[\\da-f-]+)';
  expect(lines.join('\n')).toMatch(
    new RegExp(
      `^${id}: Oslo and Bergen\\.\n${id}: Along the fjord\\.\n\\2 is forked from \\1 before message 2$`,
    ),
  );
  const [, byTrain, byBicycle] = stub.requests.map(({ messages }) => messages);
  expect(byBicycle?.slice(0, -1)).toEqual(byTrain?.slice(0, -1));
  expect(byBicycle?.map(({ content }) => content).slice(1)).toEqual([
    'Three days in Norway, please.',
    'How?',
    'By bicycle.',
  ]);
  stub.assertConsumed();
});
