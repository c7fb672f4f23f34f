import { afterAll, beforeAll, expect, test } from 'vitest';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
beforeAll(async () => {
  example = await startExample('incident-agent');
});
afterAll(async () => await example.close());

const cause = { service: 'shop', cause: 'a slow query', severity: 'high' };

test('the incident agent ends with its tool, whose result is the output', async () => {
  const { rig, stub } = example;
  stub.script(
    replyCalls([{ name: 'read_log', arguments: { service: 'store' } }]),
    replyCalls([{ name: 'read_log', arguments: { service: 'shop' } }]),
    replyCalls([{ name: 'file_incident', arguments: { ...cause, severity: 'huge' } }]),
    replyCalls([{ name: 'file_incident', arguments: cause }]),
  );
  const { outcome, projection } = await rig.run({ agent: 'incident', message: 'it is slow' });
  expect(outcome).toMatchObject({
    status: 'completed',
    reason: 'tool',
    steps: 4,
    output: { incident: expect.stringMatching(/^INC-\w{8}$/), pagedOnCall: true },
  });
  const texts = projection.state?.transcript.messages.map(({ text }) => text) ?? [];
  expect(texts[2]).toContain('service: expected one of shop, bank, got \\"store\\"');
  expect(texts[6]).toContain('severity');
  expect(stub.requests[0]?.body).toMatchObject({ tool_choice: 'required' });
  stub.assertConsumed();
});

test('the incident agent fails if the model answers with a text instead of a call', async () => {
  const { rig, stub } = example;
  stub.script(replyText('It seems to be the database.'));
  const { outcome } = await rig.run({ agent: 'incident', message: 'it is slow again' });
  expect(outcome).toMatchObject({ status: 'failed', reason: 'invalid_output', output: null });
  stub.assertConsumed();
});
