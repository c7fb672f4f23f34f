import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/core/text/json.js';
import { anthropicModel } from '../../src/models/anthropic/model.js';
import type { ModelReply, ModelRequest, ModelTool } from '../../src/models/model.js';
import { adaptRequest } from '../../src/models/wire/adapted-request.js';
import { replyCalls, replyError, replyText } from '../../src/testing/replies.js';
import type { Stub } from '../../src/testing/stub-server.js';
import { assistantCalls, modelOf, request, stubWith } from './support.js';

const NEVER = new AbortController().signal;

function ask(stub: Stub, rest: Partial<ModelRequest>): Promise<ModelReply> {
  return modelOf(stub).call(request(rest), { signal: NEVER });
}

const conversation: ModelRequest['messages'] = [
  { role: 'user', text: 'look' },
  assistantCalls({ id: 'call_1_1_0', name: 'f', arguments: '{}' }),
  { role: 'tool', callId: 'call_1_1_0', text: '' },
];

const bodies = (stub: Stub) =>
  stub.requests.map(({ body }) => body as { messages: readonly JsonObject[] });

test.each([
  ['Mistral', 'Tool call id was call_1_1_0 but must be a-z, A-Z, 0-9, with a length of 9.'],
  [
    'a proxy',
    "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 9.",
  ],
  ['another', 'messages.2.tool_call_id: String should match pattern ^[a-zA-Z0-9]{9}$'],
])(
  'sends call ids of nine letters and digits after %s refused longer ones',
  async (_name, message) => {
    const stub = await stubWith(replyError(400, { message }), replyText('ok'), replyText('ok'));
    const { dropped } = await ask(stub, { messages: conversation });
    expect(dropped).toEqual(['call_ids:own']);
    const [, , assistant, result] = bodies(stub)[1]?.messages ?? [];
    const id = result?.['tool_call_id'];
    expect(id).toMatch(/^[a-z0-9]{9}$/);
    expect(assistant).toMatchObject({ tool_calls: [{ id }] });
    await ask(stub, {
      messages: [...conversation, { role: 'assistant', text: 'ok' }],
      without: dropped ?? [],
    });
    expect(bodies(stub)[2]?.messages.slice(0, 4)).toEqual(bodies(stub)[1]?.messages);
  },
);

test('sends an id of any form in one that every server takes', async () => {
  const stub = await stubWith(replyText('ok'));
  const odd = `odd id ${'x'.repeat(80)}`;
  await ask(stub, {
    messages: [
      assistantCalls({ id: odd, name: 'f', arguments: '{}' }),
      { role: 'tool', callId: odd, text: 'x' },
    ],
  });
  const [, assistant, result] = bodies(stub)[0]?.messages ?? [];
  expect(result?.['tool_call_id']).toMatch(/^[\w-]{1,40}$/);
  expect(assistant).toMatchObject({ tool_calls: [{ id: result?.['tool_call_id'] }] });
});

test.each([
  [
    'an absent content',
    ['invalid message content type: <nil>', 'messages: text content blocks must be non-empty'],
    undefined,
  ],
  ['an empty content', ["messages[2]: 'content' is required"], ''],
  [
    'only a text',
    ['content must not be null', 'content cannot be empty', "'content' is a required property"],
    '(tool calls)',
  ],
])('a server may want %s beside calls', async (_name, refusals, content) => {
  const stub = await stubWith(
    ...refusals.map((message) => replyError(400, { message })),
    replyText('ok'),
  );
  await ask(stub, { messages: conversation });
  expect(bodies(stub).at(-1)?.messages[2]?.['content']).toBe(content);
});

test('sends neither an empty result nor an empty message, nor an assistant message without text and calls', async () => {
  const stub = await stubWith(replyText('ok'));
  const messages = [
    ...conversation,
    { role: 'assistant', text: ' ' } as const,
    { role: 'user', text: '' } as const,
  ];
  await ask(stub, { instructions: '', messages });
  const texts = bodies(stub)[0]?.messages.map(({ role, content }) => [role, content]);
  expect(texts).toEqual([
    ['user', 'look'],
    ['assistant', null],
    ['tool', '(no output)'],
    ['user', '(empty message)'],
  ]);
});

test('sends the names of tools with their results if the server requires them', async () => {
  const message =
    'GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.';
  const stub = await stubWith(replyError(400, { message }), replyText('ok'));
  await ask(stub, { messages: conversation });
  expect(bodies(stub).map(({ messages }) => messages[3]?.['name'])).toEqual([undefined, 'f']);
});

const odd: ModelTool = {
  name: 'list',
  description: '',
  parameters: {
    type: 'object',
    properties: {
      'filter[id]': { type: 'string' },
      plain: {
        type: 'array',
        items: {
          type: 'object',
          properties: { $top: { type: 'integer', description: 'How many.' } },
          required: ['$top'],
        },
      },
      ['x'.repeat(70)]: { type: 'string', enum: ['$top'] },
    },
    required: ['filter[id]', 'plain'],
  },
};
const own = { 'filter[id]': '7', plain: [{ $top: 1 }], free: { $top: 2 } };

/** Returns the wire names of the properties of the tool in a schema. */
function wireNames(schema: JsonObject): readonly string[] {
  const properties = schema['properties'] as Record<string, JsonObject>;
  const plain = properties['plain']?.['items'] as {
    properties: object;
    required: readonly string[];
  };
  expect(plain.required).toEqual(Object.keys(plain.properties));
  return [...Object.keys(properties), ...Object.keys(plain.properties)];
}

test('Anthropic gets property names that it accepts, and its calls come back with the real ones', async () => {
  const stub = await stubWith();
  const seen: string[] = [];
  const past = assistantCalls({ id: 'call_1_1_0', name: 'list', arguments: JSON.stringify(own) });
  const user = { role: 'user', text: 'list' } as const;
  const messages = [user, past, { role: 'tool', callId: 'call_1_1_0', text: 'x' } as const];
  stub.script(replyCalls([{ name: 'list', arguments: {} }]));
  const model = anthropicModel({ apiKey: 'canary-key-1234', baseUrl: stub.baseUrl });
  await model.call(request({ tools: [odd], messages }), { signal: NEVER });
  const body = stub.requests[0]?.body as unknown as {
    tools: { input_schema: JsonObject }[];
    messages: { content: { type: string; input?: Record<string, unknown> }[] }[];
  };
  const names = wireNames(body.tools[0]?.input_schema ?? {});
  for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_.-]{1,64}$/);
  expect(body.tools[0]?.input_schema['required']).toEqual([names[0], 'plain']);
  expect(JSON.stringify(body.tools)).toContain('How many.');
  const input = body.messages
    .flatMap(({ content }) => content)
    .find(({ type }) => type === 'tool_use')?.input;
  expect(Object.keys(input ?? {})).toEqual([names[0], 'plain', 'free']);
  // The model repeats what it sees.
  stub.script(replyCalls([{ name: 'list', arguments: (input ?? {}) as JsonObject }]));
  const answer = await model.call(request({ tools: [odd], messages }), {
    signal: NEVER,
    onDelta: ({ kind, text }) => void (kind === 'call' && seen.push(text)),
  });
  expect(JSON.parse(answer.calls[0]?.arguments ?? '')).toEqual(own);
  expect(JSON.parse(seen.join(''))).toEqual(own);
});

test('another server gets other property names only after it refused them', async () => {
  const message = "Invalid schema for function 'list': property names must match ^[a-zA-Z0-9_]+$";
  const stub = await stubWith(replyError(400, { message }), replyText('ok'));
  const { dropped } = await ask(stub, { tools: [odd] });
  expect(dropped).toEqual(['property_names:own']);
  const [first, second] = stub.requests.map(
    ({ body }) =>
      (body as unknown as { tools: { function: { parameters: JsonObject } }[] }).tools[0]?.function
        .parameters ?? {},
  );
  expect(first).toEqual(odd.parameters);
  for (const name of wireNames(second ?? {})) expect(name).toMatch(/^\w+$/);
});

test('arguments with renamed properties keep each digit of their numbers', () => {
  const { request: adapted, restore } = adaptRequest(request({ tools: [odd] }), {
    propertyNames: /^[a-zA-Z0-9_.-]{1,64}$/,
  });
  const [name = ''] = wireNames(adapted.tools[0]?.parameters ?? {});
  const written = `{"${name}":"x","order":12345678901234567890,"plain":[1e400,-7]}`;
  const reply = {
    text: '',
    calls: [{ name: 'list', arguments: written }],
    finish: 'calls',
  } as const;
  expect(restore(reply).calls[0]?.arguments).toBe(
    '{"filter[id]":"x","order":"12345678901234567890","plain":["1e400",-7]}',
  );
});
