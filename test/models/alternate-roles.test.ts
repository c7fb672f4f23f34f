import { expect, test } from 'vitest';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { NO_DATA } from '../../src/models/wire/attachment-parts.js';
import { createChatMessages } from '../../src/models/openai/chat/request.js';
import type { ModelRequest } from '../../src/models/model.js';
import { NO_REPLAY } from '../../src/models/wire/opaque-fields.js';
import type { StubRequest } from '../../src/testing/wire-input.js';
import { replyError, replyText, type Reply } from '../../src/testing/replies.js';
import { assistantCalls, modelOf, request, stubWith } from './support.js';

const user = (text: string): PromptMessage => ({ role: 'user', text });
const assistant = (text: string): PromptMessage => ({ role: 'assistant', text });
const result: PromptMessage = { role: 'tool', callId: 'c', text: '42' };
const call = assistantCalls({ id: 'c', name: 'f', arguments: '{}' });

function ordered(...messages: readonly PromptMessage[]): readonly (readonly [string, unknown])[] {
  const options = {
    role: 'system',
    order: 'alternating',
    data: NO_DATA,
    replay: NO_REPLAY,
  } as const;
  const wire = createChatMessages({ instructions: 'i', messages }, options);
  return wire.slice(1).map(({ role, content }) => [role, content]);
}

test.each<[string, readonly PromptMessage[], readonly (readonly [string, unknown])[]]>([
  [
    'does not change messages that already alternate',
    [user('a'), call, result, result, assistant('b'), user('c')],
    [
      ['user', 'a'],
      ['assistant', null],
      ['tool', '42'],
      ['tool', '42'],
      ['assistant', 'b'],
      ['user', 'c'],
    ],
  ],
  [
    'joins what people say in a row',
    [user('a'), user('b'), user('c'), assistant('d')],
    [
      ['user', 'a\n\nb\n\nc'],
      ['assistant', 'd'],
    ],
  ],
  [
    'joins consecutive replies of the model, calls included',
    [user('a'), assistant('b'), { ...call, text: 'c' }, result],
    [
      ['user', 'a'],
      ['assistant', 'b\n\nc'],
      ['tool', '42'],
    ],
  ],
  [
    'gives the model a word between results and a message',
    [user('a'), call, result, user('b')],
    [
      ['user', 'a'],
      ['assistant', null],
      ['tool', '42'],
      ['assistant', 'Understood.'],
      ['user', 'b'],
    ],
  ],
])('%s', (_name, messages, wanted) => {
  expect(ordered(...messages)).toEqual(wanted);
});

test('joins parts with texts', () => {
  const url = 'https://example.com/a.png';
  const shown: PromptMessage = { role: 'user', text: '', attachments: [{ type: 'image', url }] };
  expect(ordered(user('see'), shown)).toEqual([
    [
      'user',
      [
        { type: 'text', text: 'see' },
        { type: 'image_url', image_url: { url } },
      ],
    ],
  ]);
});

/**
 * Counts roles as Mistral's templates do: without calls and results, user and assistant alternate.
 */
function template({ messages }: StubRequest): Reply {
  const turns = messages.filter(
    (message) => message.role === 'user' || (message.role === 'assistant' && !message.tool_calls),
  );
  const isInTurn = turns.every(({ role }, index) => (role === 'user') === (index % 2 === 0));
  if (isInTurn) return replyText('ok');
  const message =
    'Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.';
  return replyError(500, { code: 500, message, type: 'server_error' });
}

const calls: Partial<ModelRequest> = {
  messages: [user('a'), call, result, user('answer now')],
};

test.each<[string, Partial<ModelRequest>]>([
  ['consecutive user messages', { messages: [user('a'), user('b')] }],
  ['a message after results', calls],
])('is learned from a server that refuses %s, and kept', async (_name, prompt) => {
  const stub = await stubWith();
  stub.answer(template);
  const model = modelOf(stub);
  const context = { signal: new AbortController().signal };
  const answer = await model.call(request(prompt), context);
  expect(answer).toMatchObject({ text: 'ok', dropped: ['role_order:any'] });
  const again = await model.call(request({ ...prompt, without: ['role_order:any'] }), context);
  expect(again).not.toHaveProperty('dropped');
  expect(stub.requestCount).toBe(3);
  const own = modelOf(stub, { capabilities: { roleOrder: 'alternating' } });
  expect(await own.call(request(prompt), context)).not.toHaveProperty('dropped');
});

test('and instructions move into the first message if the template has no role for them', async () => {
  const stub = await stubWith();
  stub.answer(({ messages }) => {
    const isInTurn = messages.every(
      ({ role }, index) => role === (index % 2 ? 'assistant' : 'user'),
    );
    return isInTurn
      ? replyText('ok')
      : replyError(400, {
          message: 'Conversation roles must alternate user/assistant/user/assistant/...',
        });
  });
  const context = { signal: new AbortController().signal };
  const answer = await modelOf(stub).call(request({ messages: [user('a'), user('b')] }), context);
  expect(answer.dropped).toEqual(['role_order:any', 'role:system']);
  expect(stub.requests.at(-1)?.messages).toEqual([
    { role: 'user', content: 'Be brief.\n\na\n\nb' },
  ]);
});

test('retries with the Mistral API, whose error names both roles', async () => {
  const stub = await stubWith(
    replyError(400, { message: "Unexpected role 'user' after role 'tool'", code: '3230' }),
    replyText('ok'),
  );
  const answer = await modelOf(stub).call(request(calls), { signal: new AbortController().signal });
  expect(answer.dropped).toEqual(['role_order:any']);
});

test('begins each longer request with the bytes of the shorter one', () => {
  const all = [user('a'), user('b'), call, result, assistant('c'), user('d'), assistant('e')];
  const texts = all.map((_, end) => JSON.stringify(ordered(...all.slice(0, end + 1))).slice(0, -1));
  // The prefix ends only at a message that another one joins.
  const kept = texts.map((text, end) => end === 0 || text.startsWith(texts[end - 1] ?? ''));
  expect(kept).toEqual([true, false, true, true, true, true, true]);
});
