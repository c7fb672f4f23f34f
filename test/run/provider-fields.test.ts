import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { ModelEntry } from '../../src/models/model-entry.js';
import { startStub, type Stub, type StubDemand } from '../../src/testing/stub-server.js';
import { replyCalls, replyError, replyText, type Reply } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

const read = defineTool({
  name: 'read',
  description: 'Reads.',
  input: z.object({ path: z.string() }),
  effect: 'read',
  execute: async ({ path }) => `the text of ${path}`,
});
const agent = defineAgent({ name: 'reader', instructions: 'Be brief.', model: 'm', tools: [read] });

let rig: Rig;
let stubs: Stub[];
beforeEach(async () => {
  [rig, stubs] = [await createMemoryRig(), []];
});
afterEach(async () => {
  await rig.close();
  await Promise.all(stubs.map((stub) => stub.close()));
});

async function demanding(demands?: StubDemand): Promise<Stub> {
  const stub = await startStub(demands && { demands });
  stubs.push(stub);
  return stub;
}

function entry(stub: Stub, stream: boolean): Record<string, ModelEntry> {
  return { m: { model: 'thinker', baseUrl: stub.baseUrl, stream } };
}

const reading = (path: string, thought: string): Reply =>
  replyCalls(
    [
      { name: 'read', arguments: { path }, signature: `signed ${thought}` },
      { name: 'read', arguments: { path: `${path}2` } },
    ],
    { reasoning: thought, sse: { charactersPerEvent: 7 } },
  );

type Message = Record<string, unknown>;

function messagesOf(stub: Stub): readonly (readonly Message[])[] {
  return stub.requests.map(({ body }) => body['messages'] as readonly Message[]);
}

/** The messages of each request, as bytes, begin with those of the previous one. */
function expectStablePrefix(stub: Stub): void {
  const texts = messagesOf(stub).map((all) => all.map((one) => JSON.stringify(one)));
  for (const [index, all] of texts.entries()) {
    if (index > 0) expect(all.slice(0, texts[index - 1]?.length)).toEqual(texts[index - 1]);
  }
}

const large = 'why? '.repeat(20_000);

test.each([
  ['reasoning_content', 'streamed', true],
  ['thought_signature', 'whole', false],
] as const)('%s is sent back with its calls, %s', async (demands, _how, stream) => {
  const stub = await demanding(demands);
  stub.script(reading('a', 'I look at a.'), reading('b', large), replyText('All read.'));
  stub.script(reading('c', 'And c.'), replyText('That too.', { reasoning: 'Easy.' }));
  stub.script(replyText('Done.'));
  await rig.worker([agent], { models: entry(stub, stream) });
  const handle = await rig.start({ agent: 'reader', message: 'Read.', open: true });
  expect(await outcomeOf(handle, 1)).toMatchObject({ answer: 'All read.', steps: 3 });
  // The memory of the first worker is gone.
  await rig.stopWorkers();
  await rig.worker([agent], { models: entry(stub, stream) });
  await ask(handle, 'And c?');
  expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'That too.' });
  await ask(handle, 'So?');
  expect(await outcomeOf(handle, 3)).toMatchObject({ answer: 'Done.' });
  expectStablePrefix(stub);
  const replies = (messagesOf(stub).at(-1) ?? []).filter(({ role }) => role === 'assistant');
  expect(replies.map((message) => message['reasoning_content'])).toEqual([
    'I look at a.',
    large,
    undefined,
    'And c.',
    undefined,
  ]);
  const calls = replies[0]?.['tool_calls'] as readonly Message[];
  expect(calls.map(({ id, extra_content: extra }) => [id, extra])).toEqual([
    ['call_1_1_0', { google: { thought_signature: 'signed I look at a.' } }],
    ['call_1_1_1', undefined],
  ]);
  const [segment] = await segmentsOf(rig.client, handle.workflowId);
  // The large thought is in the blob store.
  expect(segment?.bytes).toBeLessThan(100_000);
  stub.assertConsumed();
});

test('another server, another model, and the other API do not receive them', async () => {
  const [one, other] = [await demanding('reasoning_content'), await demanding()];
  one.script(reading('a', 'Hm.'), replyText('Read.'));
  await rig.worker([agent], { models: entry(one, true) });
  const handle = await rig.start({ agent: 'reader', message: 'Read.', open: true });
  await outcomeOf(handle, 1);
  const elsewhere: readonly Record<string, ModelEntry>[] = [
    entry(other, true),
    { m: { model: 'other', baseUrl: one.baseUrl } },
    { m: { api: 'responses', model: 'thinker', baseUrl: one.baseUrl } },
  ];
  for (const [index, models] of elsewhere.entries()) {
    await rig.stopWorkers();
    await rig.worker([agent], { models });
    (index === 0 ? other : one).script(replyText('Yes.'));
    await ask(handle, 'Sure?');
    expect(await outcomeOf(handle, index + 2)).toMatchObject({ answer: 'Yes.' });
  }
  for (const { text } of [...other.requests, ...one.requests.slice(2)]) {
    expect(text).not.toMatch(/reasoning_content|extra_content|Hm\./);
  }
});

test('a server that refuses its own fields is called without them from then on', async () => {
  const stub = await demanding();
  const message = "property 'reasoning_content' is unsupported, did you mean 'role'?";
  stub.script(
    reading('a', 'Hm.'),
    replyError(400, { message, type: 'invalid_request_error' }),
    reading('b', 'Hm.'),
    replyText('Done.'),
  );
  await rig.worker([agent], { models: entry(stub, true) });
  const { outcome } = await rig.run({ agent: 'reader', message: 'Read.' });
  expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.', steps: 3 });
  expect(stub.requests.map(({ text }) => text.includes('reasoning_content'))).toEqual([
    false,
    true,
    false,
    false,
  ]);
  stub.assertConsumed();
});
