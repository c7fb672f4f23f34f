import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';
import { UiChat, uiText } from '../support/ui-chat.js';

let desk: HttpDesk;

beforeAll(async () => {
  desk = await openHttpDesk(['ann']);
});
afterAll(async () => await desk.close());

test('a message of a tab that has not seen the newest turn is refused, until it loads the chat again', async () => {
  const given = { agent: 'desk', id: randomUUID(), key: keyOf('ann') };
  const first = new UiChat(desk.url, given);
  await first.sendMessage({ text: 'one' });
  const second = new UiChat(desk.url, { ...given, messages: structuredClone(first.messages) });
  await second.sendMessage({ text: 'two' });
  expect(uiText(second.lastMessage)).toBe('you said: two');

  await first.sendMessage({ text: 'three' });
  expect(first.error?.message).toContain(
    'messages: expected those of turn 2, which this chat has from elsewhere, such as another tab; got them up to turn 1',
  );
  const headers = { authorization: `Bearer ${keyOf('ann')}` };
  const path = `/v1/ui/desk/${given.id}/messages`;
  const read = await fetch(`${desk.url}${path}`, { headers });
  first.messages = (await read.json()) as typeof first.messages;
  await first.sendMessage({ text: 'three' });
  expect([first.error, uiText(first.lastMessage)]).toEqual([undefined, 'you said: three']);
  // A client that sends only its newest message shows no turn.
  const bare = new UiChat(desk.url, given);
  await bare.sendMessage({ text: 'four' });
  expect(uiText(bare.lastMessage)).toBe('you said: four');
});

test('an earlier message that was edited is refused, since it has been answered', async () => {
  const chat = new UiChat(desk.url, { agent: 'desk', id: randomUUID(), key: keyOf('ann') });
  await chat.sendMessage({ text: 'one' });
  await chat.sendMessage({ text: 'two' });
  const [{ id: messageId } = { id: '' }] = chat.messages;
  await chat.sendMessage({ text: 'another one', messageId });
  expect(chat.error?.message).toContain('id: the run has received another message with this id');
});
