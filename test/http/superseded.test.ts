import { randomUUID } from 'node:crypto';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gate } from '../support/gate.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';
import { UiChat } from '../support/ui-chat.js';

let desk: HttpDesk;
let openai: OpenAI;

beforeAll(async () => {
  desk = await openHttpDesk(['ann']);
  openai = new OpenAI({ baseURL: `${desk.url}/v1`, apiKey: keyOf('ann') });
});
afterAll(async () => await desk.close());

/** Returns a message whose first model call breaks once `failed` is open, after it has streamed text. */
function breaking(failed: ReturnType<typeof gate>): string {
  const text = `twice ${randomUUID()}`;
  desk.talker.on(text, async ({ number, emit }) => {
    if (number > 1) {
      emit('the second');
      return 'the second';
    }
    emit('the first');
    await failed.wait();
    throw new Error('the connection broke');
  });
  return text;
}

const tool = {
  type: 'function',
  function: { name: 'look', description: 'looks', parameters: { type: 'object', properties: {} } },
} as const;

describe('text of a model call that has failed', () => {
  test.each([
    ['without tools of the client', {}],
    ['with tools of the client', { tools: [tool] }],
  ])('ends a streamed chat completion with an error, %s', async (_, more) => {
    const failed = gate();
    const stream = await openai.chat.completions.create({
      model: 'talker',
      messages: [{ role: 'user', content: breaking(failed) }],
      stream: true,
      ...more,
    });
    let text = '';
    const reading = (async () => {
      for await (const { choices } of stream) {
        text += choices[0]?.delta.content ?? '';
        if (text === 'the first') failed.release();
      }
    })();
    await expect(reading).rejects.toThrow('the text so far does not count');
    expect(text).toBe('the first');
  });

  test('is marked in a chat of the AI SDK, beside the text that counts', async () => {
    const failed = gate();
    const chat = new UiChat(desk.url, { agent: 'talker', id: randomUUID(), key: keyOf('ann') });
    const said = chat.sendMessage({ text: breaking(failed) });
    const parts = () => chat.messages.at(-1)?.parts.filter(({ type }) => type === 'text') ?? [];
    await expect.poll(parts).toMatchObject([{ text: 'the first' }]);
    failed.release();
    await said;
    expect(parts()).toMatchObject([
      { text: 'the first', providerMetadata: { perdure: { superseded: true } } },
      { text: 'the second', providerMetadata: undefined },
    ]);
  });
});

test('a response says whether it is in the background, also when it is read again', async () => {
  const given = { model: 'desk', input: 'hello' };
  const fore = await openai.responses.create(given);
  const back = await openai.responses.create({ ...given, background: true });
  const streamed = openai.responses.stream(given);
  const last = await streamed.finalResponse();
  expect([fore.background, back.background, last.background]).toEqual([false, true, false]);
  const read = async (id: string) => (await openai.responses.retrieve(id)).background;
  expect(await Promise.all([fore, back, last].map(({ id }) => read(id)))).toEqual([
    false,
    true,
    false,
  ]);
  const next = await openai.responses.create({ ...given, previous_response_id: back.id });
  expect([next.background, await read(next.id)]).toEqual([false, false]);
});
