import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gate } from '../support/gate.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;

beforeAll(async () => {
  desk = await openHttpDesk(['ann']);
});
// Closing fails if the server has logged a failure.
afterAll(async () => {
  await desk.close();
});

const part = (text: string) => ({ type: 'text', text });

test.each([
  ['responses', (text: string) => ({ model: 'talker', stream: true, input: text })],
  [
    'chat/completions',
    (text: string) => ({
      model: 'talker',
      stream: true,
      messages: [{ role: 'user', content: text }],
    }),
  ],
  [
    'ui/talker',
    (text: string) => ({
      id: randomUUID(),
      messages: [{ id: 'm', role: 'user', parts: [part(text)] }],
    }),
  ],
  [
    'ag-ui/talker',
    (text: string) => ({
      threadId: randomUUID(),
      runId: 'r',
      messages: [{ id: 'm', role: 'user', content: text }],
    }),
  ],
])('a client that leaves the stream of /v1/%s stops no run', async (path, bodyOf) => {
  const text = `cut ${randomUUID()}`;
  const [begun, hold] = [gate(), gate()];
  desk.talker.on(text, async ({ emit }) => {
    emit('half');
    begun.release();
    await hold.wait();
    return 'half and the rest';
  });
  const leave = new AbortController();
  const response = await fetch(`${desk.url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keyOf('ann')}`, 'content-type': 'application/json' },
    body: JSON.stringify(bodyOf(text)),
    signal: leave.signal,
  });
  expect(response.status).toBe(200);
  await response.body?.getReader().read();
  await begun.wait();
  leave.abort();
  hold.release();
  const answered = async () => {
    // Other tests on the server have an agent of the same name.
    const { rows } = await desk.client.list({ agent: 'talker', limit: 200 });
    const ours = rows.filter(({ taskQueue }) => taskQueue === desk.rig.taskQueue);
    const all = await Promise.all(ours.map(({ id }) => desk.client.transcript(id)));
    const own = all.find(({ messages }) => messages[0]?.text === text);
    return own?.messages.at(-1)?.text;
  };
  await expect.poll(answered).toBe('half and the rest');
});
