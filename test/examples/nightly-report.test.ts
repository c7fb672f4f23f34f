import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scheduleReport } from '../../examples/nightly-report/schedule-report.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { clientOf } from '../support/clerk.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
let client: PerdureClient;
beforeAll(async () => {
  example = await startExample('nightly-report');
  client = await clientOf(example.rig);
});
afterAll(async () => {
  await client.disconnect();
  await example.close();
});

test('a schedule starts a report, whose agent calls another one', async () => {
  const { stub } = example;
  stub.script(
    replyCalls([{ name: 'reader', arguments: { message: 'What is in the log of the shop?' } }]),
    replyCalls([{ name: 'read_log', arguments: { service: 'shop' } }]),
    replyText('The bank was slow three times.'),
    replyText('Report: the bank was slow.'),
  );
  const id = `nightly-${randomUUID()}`;
  await scheduleReport(client, id);
  try {
    await client.schedule.trigger(id);
    const recent = async () => (await client.schedule.describe(id)).recent;
    await expect.poll(recent, { timeout: 40_000 }).toHaveLength(1);
    const [run] = await recent();
    const outcome = await client.result(run?.id ?? '');
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Report: the bank was slow.' });
    expect(stub.requests.at(-1)?.text).toContain('The bank was slow three times.');
  } finally {
    await client.schedule.delete(id);
  }
  stub.assertConsumed();
});
