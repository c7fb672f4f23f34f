import { expect, onTestFinished, test } from 'vitest';
import {
  replyCalls,
  replyCompletion,
  replyError,
  replyRaw,
  replyText,
} from '../../src/testing/replies.js';
import { startStub, type Stub, type StubOptions } from '../../src/testing/stub-server.js';

async function stubFor(options?: StubOptions): Promise<Stub> {
  const stub = await startStub(options);
  onTestFinished(() => stub.close());
  return stub;
}

interface WireReply {
  readonly role: string;
  readonly content: string;
}

function user(content: string): WireReply {
  return { role: 'user', content };
}

function conversation(assistantMessages: number): WireReply[] {
  const assistant = { role: 'assistant', content: 'y' };
  return [user('x'), ...Array.from({ length: assistantMessages }, () => assistant)];
}

async function ask(
  stub: Stub,
  messages: readonly WireReply[],
  rest: object = {},
): Promise<Response> {
  return await fetch(`${stub.baseUrl}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'stub', messages, ...rest }),
  });
}

async function textOf(response: Promise<Response>): Promise<unknown> {
  const body = JSON.parse(await (await response).text());
  return body.choices?.[0].message.content ?? body.error?.code;
}

test('answers in the order of the script, and reports when it is used up', async () => {
  const stub = await stubFor();
  stub.script(replyText('one'), replyText('two'));
  expect(await textOf(ask(stub, [user('a')]))).toBe('one');
  expect(await textOf(ask(stub, [user('b')]))).toBe('two');
  stub.assertConsumed();
  const response = await ask(stub, [user('c')]);
  expect(response.status).toBe(400);
  expect(() => stub.assertConsumed()).toThrow(/no step for request 3 \("c", 1 message\)/);
});

test('gives each reply an id of its own, by which some clients tell messages apart', async () => {
  const stub = await stubFor();
  stub.script(replyText('one'), replyText('two'));
  const ids = new Set<unknown>();
  for (const content of ['a', 'b']) {
    const { id }: { id: unknown } = JSON.parse(await (await ask(stub, [user(content)])).text());
    ids.add(id);
  }
  expect(ids).toEqual(new Set(['chatcmpl-1', 'chatcmpl-2']));
});

test('names unused steps', async () => {
  const stub = await stubFor();
  stub.script(replyText('one'));
  stub.scriptFor('blue', replyText('x'), replyText('y'));
  expect(() => stub.assertConsumed()).toThrow(
    'Unused: 1 step of the common queue, 2 steps for "blue".',
  );
});

test('keeps a queue per conversation, identified by the first user message', async () => {
  const stub = await stubFor();
  stub.scriptFor('run-a', replyText('a1'), replyText('a2'));
  stub.scriptFor('run-b', replyText('b1'));
  stub.script(replyText('common'));
  expect(await textOf(ask(stub, [user('do run-b'), user('not run-a')]))).toBe('b1');
  expect(await textOf(ask(stub, [user('do run-a')]))).toBe('a1');
  expect(await textOf(ask(stub, [user('do run-a')]))).toBe('a2');
  expect(await textOf(ask(stub, [user('do run-a')]))).toBe('stub_exhausted');
  expect(await textOf(ask(stub, [user('another')]))).toBe('common');
});

test('answers from functions after the queues and before the fallback', async () => {
  const stub = await stubFor();
  stub.fallback(() => replyText('fallback'));
  stub.answer((request) =>
    request.messages.length > 3 ? undefined : replyText(`step ${request.assistantMessages}`),
  );
  stub.script(replyText('scripted'));
  expect(await textOf(ask(stub, conversation(0)))).toBe('scripted');
  expect(await textOf(ask(stub, conversation(0)))).toBe('step 0');
  expect(await textOf(ask(stub, conversation(2)))).toBe('step 2');
  expect(await textOf(ask(stub, conversation(4)))).toBe('fallback');
});

test('records requests byte for byte, and counts equal ones', async () => {
  const stub = await stubFor();
  stub.fallback(() => replyText('ok'));
  const text = '{"model":"m", "messages":[{"role":"user","content":"ä"}]}';
  const send = (body: string): Promise<Response> =>
    fetch(`${stub.baseUrl}/chat/completions`, {
      method: 'POST',
      body,
      headers: { 'x-mine': 'yes' },
    });
  await (await send(text)).text();
  await (await send(`${text} `)).text();
  await (await send(text)).text();
  await (await send('no json')).text();
  expect(stub.requests.map((request) => request.attempt)).toEqual([1, 1, 2, 1]);
  expect(stub.requests.map((request) => request.number)).toEqual([1, 2, 3, 4]);
  const [first] = stub.requests;
  expect(first).toMatchObject({
    text,
    body: { model: 'm' },
    messages: [{ role: 'user', content: 'ä' }],
    headers: { 'x-mine': 'yes' },
    closedByClient: false,
  });
  expect(await first?.ended).toBe('answered');
  expect(stub.requests[3]?.body).toEqual({});
});

test('keeps only the newest requests if `keep` is set', async () => {
  const stub = await stubFor({ keep: 2 });
  stub.fallback(() => replyText('ok'));
  for (const content of ['a', 'b', 'c']) {
    // oxlint-disable-next-line no-await-in-loop
    await textOf(ask(stub, [user(content)]));
  }
  expect(stub.requests.map((request) => request.number)).toEqual([2, 3]);
  expect(stub.requestCount).toBe(3);
});

test('sends calls, usage, and finish reasons as scripted', async () => {
  const stub = await stubFor();
  stub.script(
    replyCalls([
      { name: 'f', arguments: { a: 1 } },
      { name: 'g', arguments: 'no json' },
    ]),
    replyText('x', { usage: null, finish: null }),
    replyText('x', { usage: { prompt_tokens: 7 }, finish: 'odd' }),
    replyCompletion({ anything: true }),
    replyError(429, { code: 'slow' }, { headers: { 'retry-after': '7' } }),
    replyRaw('<html>', { status: 502, headers: { 'content-type': 'text/html' } }),
  );
  const bodies: unknown[] = [];
  for (let count = 0; count < 4; count += 1) {
    // oxlint-disable-next-line no-await-in-loop
    bodies.push(await (await ask(stub, [user('x')])).json());
  }
  expect(bodies[0]).toMatchObject({
    choices: [
      {
        finish_reason: 'tool_calls',
        message: {
          content: null,
          tool_calls: [
            { id: 'call_0', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
            { id: 'call_1', function: { name: 'g', arguments: 'no json' } },
          ],
        },
      },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  });
  expect(bodies[1]).not.toHaveProperty('usage');
  expect(bodies[1]).toMatchObject({ choices: [{ finish_reason: null }] });
  expect(bodies[2]).toMatchObject({
    choices: [{ finish_reason: 'odd' }],
    usage: { prompt_tokens: 7 },
  });
  expect(bodies[3]).toEqual({ anything: true });
  const refused = await ask(stub, [user('x')]);
  expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toEqual([
    429,
    '7',
    { error: { code: 'slow' } },
  ]);
  const page = await ask(stub, [user('x')]);
  expect([page.status, page.headers.get('content-type'), await page.text()]).toEqual([
    502,
    'text/html',
    '<html>',
  ]);
});

test('sends token probabilities, whole and streamed', async () => {
  const stub = await stubFor();
  const logprobs = [{ token: 'A', top: { A: 0.5, B: 0 } }];
  stub.fallback(() => replyText('A', { logprobs }));
  const whole = JSON.parse(await (await ask(stub, [user('a')])).text());
  const expected = [
    {
      token: 'A',
      logprob: Math.log(0.5),
      top_logprobs: [
        { token: 'A', logprob: Math.log(0.5) },
        { token: 'B', logprob: null },
      ],
    },
  ];
  expect(whole.choices[0].logprobs).toEqual({ content: expected });
  const streamed = await (await ask(stub, [user('a')], { stream: true })).text();
  const tokens = streamed
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)))
    .flatMap(({ choices }) => choices[0]?.logprobs?.content ?? []);
  expect(tokens).toEqual(expected);
});

test('lists its model, and has no other path', async () => {
  const stub = await stubFor();
  const models = await fetch(`${stub.baseUrl}/models`);
  expect(await models.json()).toMatchObject({ data: [{ id: 'stub' }] });
  const other = await fetch(`${stub.baseUrl}/other`);
  expect(other.status).toBe(404);
  expect(stub.requests).toEqual([]);
});

test('reports a script function that throws instead of hiding it', async () => {
  const stub = await stubFor();
  stub.answer(() => {
    throw new Error('my mistake');
  });
  await expect(ask(stub, [user('x')])).rejects.toThrow('fetch failed');
  expect(() => stub.assertConsumed()).toThrow('my mistake');
});

const format = (schema: object): object => ({
  response_format: { type: 'json_schema', json_schema: { name: 'x', strict: true, schema } },
});
const closed = {
  type: 'object',
  properties: { n: { type: 'integer' } },
  required: ['n'],
  additionalProperties: false,
};

test('refuses a strict schema that OpenAI would refuse, of an answer and of a tool', async () => {
  const stub = await stubFor();
  const open = { ...closed, properties: { n: { type: 'object' } } };
  const refused = await ask(stub, [user('x')], format(open));
  expect(refused.status).toBe(400);
  expect(await refused.text()).toContain("In context=('properties', 'n'), 'additionalProperties'");
  const tool = { type: 'function', function: { name: 'f', strict: true, parameters: open } };
  expect((await ask(stub, [user('x')], { tools: [tool] })).status).toBe(400);
  stub.script(replyText('{"n":1}'));
  expect((await ask(stub, [user('x')], format(closed))).status).toBe(200);
  stub.assertConsumed();
});

test('complains of a text that no provider could write under the strict schema', async () => {
  const stub = await stubFor();
  stub.script(replyText('{"n":"1"}'));
  await ask(stub, [user('x')], format(closed));
  expect(() => stub.assertConsumed()).toThrow('does not fit the strict schema');
  const lax = await stubFor({ enforces: false });
  lax.script(replyText('{"n":"1"}'));
  await ask(lax, [user('x')], format(closed));
  lax.assertConsumed();
});
