import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { ModelEntry } from '../../src/models/model-entry.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { replyCalls, replyError, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { messagesIn, segmentsOf } from '../support/segments.js';

const read = defineTool({
  name: 'read',
  description: 'Reads.',
  input: z.object({ path: z.string() }),
  effect: 'read',
  execute: async ({ path }) => `the text of ${path}`,
});
const agent = defineAgent({ name: 'reader', instructions: 'Be brief.', model: 'm', tools: [read] });

let rig: Rig;
let stub: Stub;
beforeEach(async () => {
  [rig, stub] = [await createMemoryRig(), await startStub()];
});
afterEach(async () => {
  await rig.close();
  await stub.close();
});

function entry(rest: Partial<ModelEntry> = {}): Record<string, ModelEntry> {
  return { m: { api: 'responses', model: 'gpt-5', baseUrl: stub.baseUrl, ...rest } };
}

function reading(path: string, reasoning: string) {
  return replyCalls([{ name: 'read', arguments: { path } }], { reasoning });
}

type Item = Record<string, unknown>;

function inputs(): readonly (readonly Item[])[] {
  return stub.requests.map(({ body }) => body['input'] as readonly Item[]);
}

/** The items of each request, as bytes, begin with those of the previous one. */
function expectStablePrefix(): void {
  const texts = inputs().map((items) => items.map((item) => JSON.stringify(item)));
  for (const [index, items] of texts.entries()) {
    if (index > 0) expect(items.slice(0, texts[index - 1]?.length)).toEqual(texts[index - 1]);
  }
}

test('every request begins with the previous one, thoughts included, also on another worker', async () => {
  await rig.worker([agent], { models: entry() });
  const large = 'why? '.repeat(20_000);
  stub.script(
    reading('a', 'I shall look at a.'),
    replyCalls(
      [
        { name: 'read', arguments: { path: 'b' } },
        { name: 'read', arguments: { path: 'c' } },
      ],
      { text: 'Two more.', reasoning: large },
    ),
    replyText('All read.', { reasoning: 'That was it.' }),
    reading('d', 'Once more.'),
    replyText('Read again.'),
  );
  const handle = await rig.start({ agent: 'reader', message: 'Read.', open: true });
  expect(await outcomeOf(handle, 1)).toMatchObject({ answer: 'All read.', steps: 3 });
  // The memory of the first worker is gone.
  await rig.stopWorkers();
  await rig.worker([agent], { models: entry() });
  await ask(handle, 'And d?');
  expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'Read again.' });
  expectStablePrefix();
  const last = inputs().at(-1) ?? [];
  expect(last.map(({ type }) => type).join(' ')).toBe(
    [
      'message',
      'reasoning function_call function_call_output',
      'reasoning message function_call function_call function_call_output function_call_output',
      'reasoning message message',
      'reasoning function_call function_call_output',
    ].join(' '),
  );
  const calls = last.filter(({ type }) => type === 'function_call');
  expect(calls.map(({ id, call_id }) => [id, call_id])).toEqual([
    ['fc_1_0', 'call_1_1_0'],
    ['fc_2_0', 'call_1_2_0'],
    ['fc_2_1', 'call_1_2_1'],
    ['fc_4_0', 'call_2_1_0'],
  ]);
  expect(stub.requests[0]?.body).toMatchObject({
    model: 'gpt-5',
    instructions: 'Be brief.',
    store: false,
    include: ['reasoning.encrypted_content'],
    tools: [{ type: 'function', name: 'read', strict: false }, { name: 'read_result' }],
  });
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await handle.result();
  const [segment] = await segmentsOf(rig.client, handle.workflowId);
  // The large thought is in the blob store.
  expect(segment?.bytes).toBeLessThan(100_000);
  stub.assertConsumed();
});

test('thoughts continue from segment to segment', async () => {
  const segment = { steps: 2, bytes: 2_000_000 };
  await rig.worker([agent], { models: entry(), segment });
  const paths = ['a', 'b', 'c', 'd', 'e'];
  const room = 'x'.repeat(12_000);
  stub.script(
    ...paths.map((path) => reading(path, `${room} I look at ${path}.`)),
    replyText('Done.', { reasoning: 'Done.' }),
  );
  const handle = await rig.start({ agent: 'reader', message: 'Read.' });
  await handle.result();
  expectStablePrefix();
  const last = inputs().at(-1) ?? [];
  expect(last.filter(({ type }) => type === 'reasoning')).toHaveLength(5);
  const segments = await segmentsOf(rig.client, handle.workflowId);
  expect(segments.length).toBeGreaterThan(1);
  expect(messagesIn(segments).map(({ role }) => role)).toHaveLength(12);
  stub.assertConsumed();
});

test('a model that refuses its own thoughts is called without them from then on', async () => {
  await rig.worker([agent], { models: entry() });
  const message =
    'The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.';
  stub.script(
    reading('a', 'Hm.'),
    replyError(400, { message, type: 'invalid_request_error', code: 'invalid_encrypted_content' }),
    reading('b', 'Hm.'),
    replyText('Done.'),
  );
  const { outcome } = await rig.run({ agent: 'reader', message: 'Read.' });
  expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.', steps: 3 });
  expect(inputs().map((items) => items.filter(({ type }) => type === 'reasoning').length)).toEqual([
    0, 1, 0, 0,
  ]);
  stub.assertConsumed();
});

test('a run whose model does not think costs the same as in the other API', async () => {
  await rig.worker([agent], { models: entry() });
  const script = () =>
    stub.script(replyCalls([{ name: 'read', arguments: { path: 'a' } }]), replyText('Done.'));
  script();
  const one = await rig.run({ agent: 'reader', message: 'Read.' });
  await rig.stopWorkers();
  await rig.worker([agent], { models: { m: { model: 'gpt-5', baseUrl: stub.baseUrl } } });
  script();
  const other = await rig.run({ agent: 'reader', message: 'Read.' });
  const repliesOf = ({ projection }: typeof one) =>
    projection.messages.map((message) => ({ ...message, at: 0 }));
  expect(repliesOf(one)).toEqual(repliesOf(other));
  expect(one.history.events).toHaveLength(other.history.events?.length ?? 0);
});
