import { expect, test } from 'vitest';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { createMessagesRequest } from '../../src/models/anthropic/request.js';
import { parseMessage } from '../../src/models/anthropic/api.js';
import { assembleMessage } from '../../src/models/anthropic/stream.js';
import type { ModelReply } from '../../src/models/model.js';
import { listChatParameters } from '../../src/models/openai/chat/index.js';
import { alternateRoles, createChatRequest } from '../../src/models/openai/chat/request.js';
import { parseCompletion } from '../../src/models/openai/chat/reply.js';
import { assembleCompletion } from '../../src/models/openai/chat/stream.js';
import { parseResponse } from '../../src/models/openai/responses/reply.js';
import { createResponsesRequest } from '../../src/models/openai/responses/request.js';
import { getCapabilities } from '../../src/models/known-models.js';
import { NO_DATA } from '../../src/models/wire/attachment-parts.js';
import { mergeDelta } from '../../src/models/wire/opaque-fields.js';
import { findRefused } from '../../src/models/wire/refusals.js';
import { request, source } from './support.js';

test.each<[string, readonly unknown[], unknown]>([
  [
    'texts by index',
    [
      [{ type: 'reasoning.text', text: 'I ', index: 0, id: 'r' }],
      [{ type: 'reasoning.text', text: 'look.', index: 0, id: 'r', format: 'f' }],
      [{ type: 'reasoning.text', text: 'Next.', index: 1 }],
      [{ type: 'reasoning.text', signature: 'sig', index: 0 }],
    ],
    [
      { type: 'reasoning.text', text: 'I look.', index: 0, id: 'r', format: 'f', signature: 'sig' },
      { type: 'reasoning.text', text: 'Next.', index: 1 },
    ],
  ],
  [
    'a text and encrypted data under one index',
    [
      [{ type: 'reasoning.text', text: 'a', index: 0 }],
      [{ type: 'reasoning.encrypted', data: 'xyz', index: 0 }],
    ],
    [
      { type: 'reasoning.text', text: 'a', index: 0 },
      { type: 'reasoning.encrypted', data: 'xyz', index: 0 },
    ],
  ],
  [
    'blocks without index, up to the signature of each',
    [
      [{ type: 'thinking', thinking: 'a', signature: null }],
      [{ type: 'thinking', thinking: 'b', signature: '' }],
      [{ type: 'thinking', thinking: '', signature: 's1' }],
      [{ type: 'thinking', thinking: 'c' }],
      [{ type: 'redacted_thinking', data: 'd1' }],
      [{ type: 'redacted_thinking', data: 'd2' }],
    ],
    [
      { type: 'thinking', thinking: 'ab', signature: 's1' },
      { type: 'thinking', thinking: 'c' },
      { type: 'redacted_thinking', data: 'd1' },
      { type: 'redacted_thinking', data: 'd2' },
    ],
  ],
  [
    'objects in objects',
    [{ google: { thought_signature: 's' } }, { google: { thought_signature: 's' } }, { other: 1 }],
    { google: { thought_signature: 's' }, other: 1 },
  ],
  ['a long text that is sent twice', ['0123456789abcdef', '0123456789abcdef'], '0123456789abcdef'],
  ['short texts', ['ha', 'ha'], 'haha'],
  ['nothing after something', ['a', null, undefined], 'a'],
])('merges %s', (_name, deltas, expected) => {
  const copies = structuredClone(deltas);
  expect(copies.reduce((whole, delta) => mergeDelta(whole, delta), undefined)).toEqual(expected);
});

test('merging does not reach a prototype', () => {
  const hostile: unknown = JSON.parse('{"__proto__":{"polluted":1}}');
  expect(mergeDelta({}, hostile)).not.toHaveProperty('polluted');
});

const details = [{ type: 'reasoning.encrypted', data: 'c2ln', id: 'call_x1', index: 0 }];
const opaque = {
  reasoning: 'I look.',
  reasoning_content: 'I look.',
  reasoning_details: details,
  thinking_blocks: [{ type: 'thinking', thinking: 'I look.', signature: 's' }],
  provider_specific_fields: { thought_signatures: ['t'] },
};
const wireCalls = [
  {
    id: 'call_x1',
    type: 'function',
    extra_content: { google: { thought_signature: 'g' } },
    provider_specific_fields: { thought_signature: 'p' },
    function: { name: 'f', arguments: '{}', thought_signature: 'q' },
  },
  { id: 'call_x2', type: 'function', function: { name: 'f', arguments: '{}' } },
];

/** The messages of a conversation in which the model made this reply. */
function after({ text, calls, provider }: ModelReply): readonly PromptMessage[] {
  const placed = calls.map((call, index) => ({ ...call, id: `call_1_1_${index}`, digest: '' }));
  return [
    { role: 'user', text: 'hello' },
    {
      role: 'assistant',
      text,
      ...(calls.length > 0 && { calls: placed }),
      ...(provider && { provider }),
    },
    ...placed.map(({ id }): PromptMessage => ({ role: 'tool', text: 'ok', callId: id })),
  ];
}

function chatAfter(
  answer: ModelReply,
  from = answer.provider?.from ?? '',
  without: readonly string[] = [],
) {
  const replay = { from, stored: new Map() };
  const options = { stream: false, replay };
  const given = request({ messages: after(answer), without: without as never });
  return createChatRequest(given, options).messages.slice(2);
}

function streamed(...deltas: readonly object[]): ModelReply {
  const assembly = assembleCompletion();
  for (const delta of structuredClone(deltas)) assembly.add({ choices: [{ index: 0, delta }] });
  assembly.add({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] });
  return parseCompletion(assembly.answer(), source());
}

test.each<[string, ModelReply]>([
  [
    'whole',
    parseCompletion(
      {
        choices: [
          { message: { content: null, annotations: null, ...opaque, tool_calls: wireCalls } },
        ],
      },
      source(),
    ),
  ],
  [
    'streamed',
    streamed(
      { role: 'assistant', reasoning: 'I ', reasoning_content: 'I ', reasoning_details: details },
      { reasoning: 'look.', reasoning_content: 'look.' },
      { thinking_blocks: [{ type: 'thinking', thinking: 'I look.' }] },
      { thinking_blocks: [{ type: 'thinking', thinking: '', signature: 's' }] },
      { provider_specific_fields: opaque.provider_specific_fields },
      { tool_calls: wireCalls.map((call, index) => ({ index, ...call })) },
    ),
  ],
])('chat: all unknown fields go back to the model that made them, %s', (_how, answer) => {
  const [assistant, ...results] = chatAfter(answer);
  // The details refer to the server's own id of the first call.
  expect(assistant).toEqual({
    role: 'assistant',
    content: null,
    ...opaque,
    tool_calls: [wireCalls[0], { ...wireCalls[1], id: 'call_1_1_1' }],
  });
  expect(results.map((one) => one.role === 'tool' && one.tool_call_id)).toEqual([
    'call_x1',
    'call_1_1_1',
  ]);
  expect(JSON.stringify(chatAfter(answer, 'another model'))).not.toMatch(
    /reasoning|think|google|call_x1/,
  );
});

test('chat: signatures go back with an answer, its plain thoughts do not', () => {
  const message = { content: 'Hi.', ...opaque };
  const [assistant] = chatAfter(
    parseCompletion({ choices: [{ message, finish_reason: 'stop' }] }, source()),
  );
  const { reasoning: _, reasoning_content: _content, ...kept } = opaque;
  expect(assistant).toEqual({ role: 'assistant', content: 'Hi.', ...kept });
});

const thinking = (text: string) => ({ type: 'thinking', thinking: [{ type: 'text', text }] });
const inParts = [thinking('I look.'), { type: 'text', text: 'Hi.' }];
const twice = [
  ...inParts,
  { type: 'reference', reference_ids: [1] },
  { type: 'text', text: 'Yes' },
];

test.each<[string, readonly object[] | null, ModelReply]>([
  [
    'whole',
    inParts,
    parseCompletion({ choices: [{ message: { content: structuredClone(inParts) } }] }, source()),
  ],
  [
    'whole, between texts',
    twice,
    parseCompletion({ choices: [{ message: { content: structuredClone(twice) } }] }, source()),
  ],
  [
    'streamed',
    inParts,
    streamed(
      { role: 'assistant', content: '' },
      { content: [thinking('I ')] },
      { content: [thinking('look.')] },
      { content: 'H' },
      { content: [{ type: 'text', text: 'i.' }] },
    ),
  ],
  [
    'streamed, between texts',
    twice,
    streamed(
      { content: twice.slice(0, 1) },
      { content: 'Hi.' },
      { content: twice.slice(2, 3) },
      { content: 'Yes' },
    ),
  ],
])('chat: parts of the content that are no text go back as they came, %s', (_, parts, answer) => {
  expect(answer.text).toBe(parts === twice ? 'Hi.Yes' : 'Hi.');
  expect(chatAfter(answer)).toEqual([{ role: 'assistant', content: parts }]);
  // The same parts are sent each time, so that the provider's cache of the prompt works.
  expect(chatAfter(answer)).toEqual(chatAfter(answer));
  const plain = [{ role: 'assistant', content: answer.text }];
  expect(chatAfter(answer, 'another model')).toEqual(plain);
  expect(chatAfter(answer, undefined, ['provider_items.content'])).toEqual(plain);
  // A text that was changed since, such as by redaction, has no known places.
  const [first, ...rest] = parts?.filter((part) => !('text' in part)) ?? [];
  expect(chatAfter({ ...answer, text: 'Hi [redacted].' })).toEqual([
    { role: 'assistant', content: [first, { type: 'text', text: 'Hi [redacted].' }, ...rest] },
  ]);
});

test('chat: thoughts in the content go back with calls, and are shown as thoughts', () => {
  const shown: unknown[] = [];
  const assembly = assembleCompletion((delta) => shown.push(delta));
  const [call] = wireCalls.slice(1);
  const deltas = [
    { content: [thinking('I ')] },
    { content: [thinking('look.')] },
    { tool_calls: [call] },
  ];
  for (const delta of structuredClone(deltas)) assembly.add({ choices: [{ index: 0, delta }] });
  assembly.add({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] });
  const answer = parseCompletion(assembly.answer(), source());
  expect(shown.slice(0, 2)).toEqual([
    { kind: 'reasoning', text: 'I ' },
    { kind: 'reasoning', text: 'look.' },
  ]);
  expect(chatAfter(answer)[0]).toMatchObject({ content: [thinking('I look.')] });
  // Content of texts alone is a text again.
  const texts = [{ type: 'text', text: 'Hi' }, '.'];
  const plain = parseCompletion({ choices: [{ message: { content: texts } }] }, source());
  expect(chatAfter(plain)).toEqual([{ role: 'assistant', content: 'Hi.' }]);
});

test('chat: a refused part is left out, and the text stays', () => {
  const answer = parseCompletion({ choices: [{ message: { content: inParts } }] }, source());
  const replay = { from: answer.provider?.from ?? '', stored: new Map() };
  const given = request({ messages: after(answer) });
  const sent = listChatParameters(given, createChatRequest(given, { stream: false, replay }));
  const refuse = (message: string) =>
    findRefused(sent, { status: 400, headers: new Headers(), error: { message } });
  expect(refuse("messages[1].content[0]: unsupported type 'thinking'")).toBe(
    'provider_items.content',
  );
  expect(refuse("messages[1].content: expected a string, 'content' is not supported")).toBe(
    'provider_items.content',
  );
});

test('chat: neighboring answers with parts become one', () => {
  const next = { role: 'assistant', content: 'Bye.' } as const;
  expect(alternateRoles([{ role: 'assistant', content: inParts }, next])).toEqual([
    { role: 'assistant', content: [...inParts, { type: 'text', text: 'Bye.' }] },
  ]);
});

test('chat: fields that perdure writes cannot be replaced', () => {
  const items = [
    { role: 'system', content: 'x', tool_calls: [], seen: 1 },
    { call: 0, function: { name: 'rm', seen: 2 } },
  ];
  const answer = {
    text: '',
    calls: [{ name: 'f', arguments: '{}' }],
    finish: 'calls',
    provider: { from: 'm', items },
  } as const;
  expect(chatAfter(answer)[0]).toEqual({
    role: 'assistant',
    content: null,
    seen: 1,
    tool_calls: [
      { id: 'call_1_1_0', type: 'function', function: { name: 'f', arguments: '{}', seen: 2 } },
    ],
  });
});

test('chat: one refused field is left out alone', () => {
  const answer = parseCompletion(
    { choices: [{ message: { ...opaque, tool_calls: wireCalls } }] },
    source(),
  );
  const [assistant] = chatAfter(answer, undefined, ['provider_items.reasoning']);
  expect(assistant).not.toHaveProperty('reasoning');
  expect(assistant).toHaveProperty('reasoning_details');
});

test('responses: items of unknown types and unknown fields of calls go back', () => {
  const output = [
    { type: 'novel_item', id: 'n', secret: 'abc' },
    {
      type: 'function_call',
      id: 'fc',
      call_id: 'x',
      name: 'f',
      arguments: '{}',
      thought_signature: 's',
    },
  ];
  const answer = parseResponse({ status: 'completed', output }, source());
  const write = (from: string) =>
    createResponsesRequest(request({ messages: after(answer) }), {
      stream: false,
      capabilities: getCapabilities('stub'),
      data: NO_DATA,
      replay: { from, stored: new Map() },
    }).input.slice(1, 3);
  expect(write(answer.provider?.from ?? '')).toEqual([
    output[0],
    { ...output[1], call_id: 'call_1_1_0' },
  ]);
  expect(JSON.stringify(write('another model'))).not.toMatch(/novel|thought/);
});

const blocks = [
  { type: 'novel_block', id: 'n', note: 'abc', input: { q: 1 } },
  { type: 'text', text: 'Hi.', seal: 's' },
  { type: 'tool_use', id: 'x', name: 'f', input: {}, thought_signature: 't' },
];

test.each<[string, ModelReply]>([
  ['whole', parseMessage({ content: blocks, stop_reason: 'tool_use' }, source())],
  [
    'streamed',
    (() => {
      const assembly = assembleMessage();
      const add = (type: string, index: number, rest: object) =>
        assembly.add({ type: `content_block_${type}`, index, ...rest });
      add('start', 0, { content_block: { type: 'novel_block', id: 'n', input: {}, note: '' } });
      add('delta', 0, { delta: { type: 'input_json_delta', partial_json: '{"q"' } });
      add('delta', 0, { delta: { type: 'input_json_delta', partial_json: ':1}' } });
      add('delta', 0, { delta: { type: 'note_delta', note: 'a' } });
      add('delta', 0, { delta: { type: 'note_delta', note: 'bc' } });
      add('start', 1, { content_block: { type: 'text', text: '', seal: 's' } });
      add('delta', 1, { delta: { type: 'text_delta', text: 'Hi.' } });
      add('start', 2, {
        content_block: { type: 'tool_use', id: 'x', name: 'f', input: {}, thought_signature: 't' },
      });
      assembly.add({ type: 'message_delta', delta: { stop_reason: 'tool_use' } });
      return parseMessage(assembly.answer(), source());
    })(),
  ],
])(
  'anthropic: unknown blocks and fields go back to the model that made them, %s',
  (_how, answer) => {
    const write = (from: string) =>
      createMessagesRequest(request({ messages: after(answer) }), {
        stream: false,
        replay: { from, stored: new Map() },
      }).messages[1]?.content;
    expect(write(answer.provider?.from ?? '')).toEqual([
      blocks[0],
      blocks[1],
      { ...blocks[2], id: 'call_1_1_0' },
    ]);
    expect(JSON.stringify(write('another model'))).not.toMatch(/novel|seal|thought/);
  },
);
