import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { WorkflowHandle } from '@temporalio/client';
import type { Request } from '../../src/core/transcript/request.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { resolveRequests } from '../../src/updates/decide.js';
import { startExample, type Example } from '../support/example.js';

let desk: Example;
beforeAll(async () => {
  desk = await startExample('refund-desk');
});
afterAll(async () => await desk.close());

const refund = (euros: number) => ({ name: 'refund', arguments: { order: 17, euros } });

async function requestOf(handle: WorkflowHandle): Promise<Request> {
  return await vi.waitFor(
    async () => {
      const { status, pending } = await handle.query<RunStatus>('status');
      const [request] = pending;
      if (status !== 'waiting_decision' || request === undefined) throw new Error(status);
      return request;
    },
    { timeout: 20_000, interval: 50 },
  );
}

test('a small refund is made at once', async () => {
  desk.stub.script(replyCalls([refund(40)]), replyText('Refunded.'));
  const { projection } = await desk.rig.run({ agent: 'desk', message: 'refund 40' });
  const texts = projection.state?.transcript.messages.map(({ text }) => text) ?? [];
  expect(texts).toContain('refunded 40 € for order 17');
  desk.stub.assertConsumed();
});

test('a larger one waits for someone other than the requester', async () => {
  desk.stub.script(replyCalls([refund(60)]), replyText('Refunded.'));
  const { client } = desk.rig;
  const handle = await desk.rig.start({ agent: 'desk', message: 'refund 60', by: 'ann' });
  const { id, digest, shown, kind, deciders } = await requestOf(handle);
  expect({ kind, deciders }).toEqual({ kind: 'approval', deciders: ['not_requester'] });
  expect(shown).toContain('refund 60 € to order 17');
  const decision = { request: id, digest, as: 'approve' } as const;
  const own = resolveRequests(client, handle.workflowId, decision, { by: 'ann' });
  await expect(own).rejects.toMatchObject({ reason: 'not_a_decider' });
  const [receipt] = await resolveRequests(client, handle.workflowId, decision, { by: 'bob' });
  expect(receipt).toMatchObject({ request: id, as: 'approve' });
  const { outcome, projection } = await desk.rig.end(handle);
  expect(outcome).toMatchObject({ status: 'completed', answer: 'Refunded.' });
  const texts = projection.state?.transcript.messages.map(({ text }) => text) ?? [];
  expect(texts).toContain('refunded 60 € for order 17');
  desk.stub.assertConsumed();
});

test('a huge one is denied without a request', async () => {
  desk.stub.script(replyCalls([refund(5_000)]), replyText('That is not possible.'));
  const { projection } = await desk.rig.run({ agent: 'desk', message: 'refund 5000' });
  const texts = projection.state?.transcript.messages.map(({ text }) => text) ?? [];
  expect(texts.some((text) => text.includes('rule: deny refund'))).toBe(true);
  desk.stub.assertConsumed();
});
