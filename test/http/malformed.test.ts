import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;
/** An open run of the desk, and the path of one that waits for a decision, with what a decision names. */
let open: string;
let asked: { readonly path: string; readonly request: string; readonly digest: string };

beforeAll(async () => {
  desk = await openHttpDesk(['ann', 'bob'], {
    limits: { requestsPerMinute: 10_000 },
    principals: {
      ann: { rights: { '*': 'all' } },
      bob: { rights: { other: ['start'] } },
    },
  });
  const { id, request } = await desk.asking(31, 'ann');
  asked = { path: `/v1/runs/${id}/decisions`, request: request.id, digest: request.digest };
  const started = await desk.send('/v1/runs', {
    body: { agent: 'desk', message: 'hello', open: true },
  });
  open = `/v1/runs/${started.body.id}`;
  await desk.send(`${open}/result?turn=1`);
});
afterAll(async () => {
  await desk.close();
});

interface Raw {
  readonly body?: string | Uint8Array;
  readonly type?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a body as it is, and returns the status and what is said. */
async function raw(path: string, { body, type, method, headers }: Raw = {}) {
  const response = await fetch(desk.url + path, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: `Bearer ${keyOf('ann')}`,
      ...(body !== undefined && { 'content-type': type ?? 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, error: errorIn(text) };
}

function errorIn(text: string): { code?: string; message?: string; fix?: string | null } {
  try {
    return (JSON.parse(text) as { error?: object }).error ?? {};
  } catch {
    return {};
  }
}

/** Sends a JSON body, and returns the message and the fix of the refusal, which has to be one of the caller's. */
async function told(path: string, body?: object): Promise<string> {
  const { status, body: answered } = await desk.send(path, body === undefined ? {} : { body });
  const { code, message, fix } = answered.error;
  expect([code, status, message]).toEqual(['input', 400, message]);
  return fix == null ? message : `${message}; ${fix}`;
}

const DECISIONS =
  'approve, some, deny, edit, answer, happened, retry, abandon, accept, raise, stop';

test('a decision that is misspelled is refused with the one that is meant', async () => {
  const { path, request, digest } = asked;
  const as = async (named: unknown, more: object = {}) =>
    await told(path, { decisions: [{ request, digest, as: named, ...more }] });
  const expected = `decisions[0].as: expected one of ${DECISIONS}, got`;
  expect(await as('aprove')).toBe(`${expected} "aprove"; did you mean approve?`);
  expect(await as('DENY')).toBe(`${expected} "DENY"; did you mean deny?`);
  for (const [rubbish, shown] of [
    [null, 'null'],
    [7, '7'],
    [[], '[]'],
    [['approve'], '["approve"]'],
    [{}, '{}'],
    ['', '""'],
  ]) {
    expect(await as(rubbish)).toBe(`${expected} ${shown as string}`);
  }
  // A long name is near to none, and is cut.
  expect(await as('z'.repeat(5_000))).toBe(`${expected} "${'z'.repeat(59)}…`);
  expect(await as('approve', { nots: 'x' })).toBe(
    'decisions[0]: expected one of the fields request, digest, as, arguments, actions, result, note, grant, got "nots"; did you mean note?',
  );
  expect(await as('approve', { grant: { scope: 'tol' } })).toBe(
    'decisions[0].grant.scope: expected one of same_call, tool, got "tol"; did you mean tool?',
  );
  expect(await as('approve', { note: 'x'.repeat(2_001) })).toBe(
    'decisions[0].note: expected at most 2000 characters, got 2001',
  );
  expect(await told(path, { decisions: [] })).toBe('decisions: expected at least 1 item, got 0');
});

test('every other name of a fixed set is refused with the nearest one', async () => {
  expect(await told('/v1/runs?status=blockd')).toMatch(
    /^status: expected one of working, .*, ended, got "blockd"; did you mean blocked\?$/,
  );
  expect(await told(`${open}/messages`, {})).toBe('message: expected a string, got none; give one');
  expect(await told(`${open}/messages`, { message: 'x', mode: 'ster' })).toBe(
    'mode: expected one of queue, steer, got "ster"; did you mean steer?',
  );
  const start = { agent: 'desk', message: 'x' };
  expect(await told('/v1/runs', { ...start, unattended: 'dney' })).toBe(
    'unattended: expected deny, got "dney"; did you mean deny?',
  );
  expect(await told('/v1/runs', { agent: 'desk', messages: [{ role: 'usr', text: 'x' }] })).toBe(
    'messages[0].role: expected one of user, assistant, got "usr"; did you mean user?',
  );
  expect(await told('/v1/runs', { ...start, agent: 'deks' })).toBe(
    'agent: there is no agent "deks"; did you mean desk? GET /v1/agents lists them',
  );
  // Names of agents that a principal may not use are no hint for it.
  const hidden = await desk.send('/v1/runs', { as: 'bob', body: { ...start, agent: 'deks' } });
  expect(hidden.body.error.fix).toBe('GET /v1/agents lists them');
  expect(await told('/v1/runs', { message: 'x' })).toBe(
    'agent: missing, expected string; give the name of an agent',
  );
});

test('a limit that does not exist or is none is refused with what there is', async () => {
  const limits = async (given: unknown) => await told(`${open}/limits`, { limits: given });
  const fields = 'steps, toolCalls, tokens, costUsd, wallMs, depth';
  expect(await limits({ stepz: 5 })).toBe(
    `limits: expected one of the fields ${fields}, run, got "stepz"; did you mean steps?`,
  );
  expect(await limits({ wall: '5m' })).toContain('got "wall"; did you mean wallMs?');
  expect(await limits({ run: { tokns: 5 } })).toBe(
    `limits.run: expected one of the fields ${fields}, got "tokns"; did you mean tokens?`,
  );
  expect(await limits({ zzz: 1, yyy: 2 })).toBe(
    `limits: expected one of the fields ${fields}, run, got "zzz", "yyy"`,
  );
  const none = 'expected a positive whole number, or null for none';
  expect(await limits({ steps: 0 })).toBe(`limits.steps: ${none}, got 0`);
  expect(await limits({ run: { tokens: -1.5 } })).toBe(`limits.run.tokens: ${none}, got -1.5`);
  expect(await told(`${open}/limits`, { steps: 5 })).toBe(
    'limits: missing, expected object; give the new limits, such as {"steps": 100}\n' +
      '"steps": expected only limits; correct or remove it',
  );
});

test('a turn that cannot be canceled is refused', async () => {
  const turn = 'turn: expected the number of a turn, such as 2';
  const fix = 'omit it to cancel the whole run';
  for (const wrong of [true, '1', 0, 1.5, null]) {
    expect(await told(`${open}/cancel`, { turn: wrong })).toBe(
      `${turn}, got ${JSON.stringify(wrong)}; ${fix}`,
    );
  }
  const { status, body } = await desk.send(`${open}/cancel`, { body: { turn: 9 } });
  expect([status, body.error.message]).toEqual([
    409,
    'no turn is under way: turn 1 has ended, and the run waits for a message',
  ]);
});

test('values of two forms are refused with both forms', async () => {
  const at = 'at: expected the number of a message, from 1, or {"node": NAME, "visit": NUMBER}';
  expect(await told(`${open}/forks`, { at: '2' })).toBe(`${at}, got "2"`);
  expect(await told(`${open}/forks`, { at: { nod: 'x' } })).toBe(`${at}, got {"nod":"x"}`);
  expect(await told(`${open}/forks`, { at: 99, message: 'x' })).toMatch(
    /^at: expected at most 2, the messages of run ".*", got 99$/,
  );
  const attached = async (attachment: unknown) =>
    await told(`${open}/messages`, { message: 'x', attachments: [attachment] });
  const forms = 'expected {"data": BASE64, "mediaType", "name"} or {"url": "https://…"}';
  expect(await attached('a')).toBe(`attachments[0]: ${forms}, got "a"`);
  expect(await attached({ url: 'file:///etc/passwd' })).toBe(
    'attachments[0].url: expected an address with http or https, got "file:///etc/passwd"',
  );
  expect(await attached({ data: 'aGVsbG8=' })).toBe(
    'attachments[0].mediaType: missing, expected a media type, since the bytes do not tell; give for example "text/csv"',
  );
});

test('bodies that are no JSON of UTF-8 are refused as what they are', async () => {
  const broken = await raw('/v1/runs', { body: "{'agent': 'desk'}" });
  expect(broken.error.message).toMatch(/^body: expected JSON, got "\{'agent': 'desk'\}" \(.+\)$/);
  expect(broken.error.fix).toBe('send a JSON object');
  const latin = new Uint8Array(Buffer.from('{"agent":"desk","message":"caf\u00e9"}', 'latin1'));
  expect((await raw('/v1/runs', { body: latin })).error).toEqual({
    code: 'input',
    message: 'body: expected text in UTF-8, got other bytes',
    fix: 'encode it as UTF-8',
  });
  const zipped = { body: '{}', headers: { 'content-encoding': 'gzip' } };
  expect((await raw('/v1/runs', zipped)).error).toMatchObject({
    code: 'unsupported',
    message: 'Content-Encoding: expected none, got "gzip"',
  });
});

test('a path or a method that does not exist is refused with those that do', async () => {
  const run = new URL(open, 'http://x').pathname;
  const wrong = await raw(`${run}/cancel`);
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
  expect(wrong.error).toEqual({
    code: 'unsupported',
    message: `method: expected POST for ${run}/cancel, got GET`,
    fix: 'GET /v1/openapi.json lists what there is',
  });
  const both = await raw('/v1/runs', { method: 'DELETE' });
  expect([both.status, both.headers.get('allow')]).toEqual([405, 'GET, POST']);
  const slash = await raw('/v1/runs/');
  expect(slash.status).toBe(404);
  expect(slash.error.fix).toMatch(/lists what there is; did you mean this path\? \/v1\/runs$/);
  const typo = await raw(`${run}/message`, { body: '{}' });
  expect(typo.error.fix).toMatch(new RegExp(`did you mean this path\\? ${run}/messages$`));
  // Clients of OpenAI read the errors of all its paths.
  const openai = await raw('/v1/chat/completion', { body: '{}' });
  expect([openai.status, openai.error]).toMatchObject([
    404,
    { type: 'invalid_request_error', code: 'not_found' },
  ]);
  expect(openai.error.message).toMatch(/did you mean this path\? \/v1\/chat\/completions$/);
});

test('the position of a stream is refused by the name that the request has', async () => {
  const begin = 'omit it for all events';
  expect(await told(`${open}/events?after=NOW`)).toBe(
    `after: expected the id of an event, or now, got "NOW"; ${begin}`,
  );
  expect(await told(`${open}/events?aftr=now`)).toBe(
    '"aftr": expected a field of this request; did you mean "after"?',
  );
  expect(await told(`${open}/events?lastEventId=x`)).toMatch(/^Last-Event-ID: /);
  const header = await raw(`${open}/events`, { headers: { 'last-event-id': 'x' } });
  expect(header.error.message).toBe('Last-Event-ID: expected the id of an event, got "x"');
});

test('a conversation that is sent again with a reply without a text is taken', async () => {
  const said = (role: string, content: unknown): object => ({ role, content });
  const input = [
    said('user', 'hello'),
    { type: 'message', ...said('assistant', [{ type: 'output_text', text: '' }]) },
    said('user', 'hello again'),
  ];
  const body = { model: 'talker', input, background: true };
  expect((await desk.send('/v1/responses', { body })).status).toBe(200);
  // A client that only reconnects may show a message that was refused.
  const shown = { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'x' }] };
  const messages = [...shown.messages, { id: 'n', role: 'user', content: '' }];
  const connected = await desk.send('/v1/ag-ui/talker/connect', { body: { ...shown, messages } });
  expect(connected.status).not.toBe(400);
});

test('what OpenAI clients send is refused by its own names', async () => {
  const openai = async (path: string, body: object) => (await desk.send(path, { body })).body.error;
  const chat = async (more: object) =>
    (await openai('/v1/chat/completions', { model: 'desk', ...more })).message;
  expect(await chat({ messages: [{ role: 'user', content: '' }] })).toBe(
    'messages[0].content: expected text, got ""; end `messages` with what the user says',
  );
  const messages = [{ role: 'user', content: 'x' }];
  expect(await chat({ messages, temperatur: 1 })).toBe(
    'temperatur: not supported here; did you mean temperature?',
  );
  expect(await chat({ messages, instructions: 'x' })).toBe(
    'instructions: not supported: the model and the instructions are those of the agent; omit it',
  );
  expect(await chat({ model: 'deks', messages })).toBe(
    'model: there is no agent "deks"; did you mean desk? GET /v1/models lists the agents',
  );
  const response = async (more: object) =>
    await openai('/v1/responses', { model: 'desk', input: 'x', ...more });
  expect((await response({ input: [{ role: 'usr', content: 'x' }] })).message).toBe(
    'input[0].role: expected user or assistant, got "usr"; the instructions are those of the agent',
  );
  expect((await response({ input: [{ type: 'mesage' }] })).message).toBe(
    'input[0].type: expected one of message, function_call_output, function_call, reasoning, got "mesage"; did you mean message?',
  );
  expect((await response({ input: '' })).message).toBe(
    'input: expected text, got ""; send what the user says as `input`',
  );
  expect((await response({ conversation: 5 })).message).toBe(
    'conversation: expected an id such as conv_x, or {"id": "conv_x"}, got 5',
  );
  expect((await response({ previous_response_id: 'resp_x' })).message).toMatch(
    /^previous_response_id: there is no response "resp_x"; give the `id` /,
  );
  expect(await response({ model: 'deks', conversation: 'conv_a' })).toMatchObject({
    code: 'model_not_found',
  });
  const { id } = (await desk.send('/v1/responses', { body: { model: 'desk', input: 'x' } })).body;
  const read = await desk.send(`/v1/responses/${id}?stream=yes`);
  expect(read.body.error.message).toBe(
    'stream: expected true or false, got "yes"; omit it for false',
  );
  // A message that nobody would get is refused.
  const items = [{ role: 'user', content: 'hi' }];
  expect((await openai('/v1/conversations', { items })).message).toMatch(/^items: not supported/);
  expect((await raw('/v1/conversations', { body: '{x' })).status).toBe(400);
});

test('a chat or thread with a wrong message begins no run', async () => {
  const begun: [door: string, id: string][] = [];
  const next = (door: string): string => {
    const id = randomUUID();
    begun.push([door, id]);
    return id;
  };
  const chat = async (message: object) =>
    await told('/v1/ui/desk', { id: next('chat'), messages: [message] });
  const user = { id: 'm1', role: 'user' };
  const text = { type: 'text', text: 'x' };
  expect(await chat({ ...user, parts: [] })).toBe('messages[0].parts: expected text, got none');
  expect(await chat({ ...user, parts: [text, { type: 'file', url: 'data:,x' }] })).toBe(
    'messages[0].parts[1].type: expected text, got "file"; this server takes no other parts',
  );
  expect(await chat({ ...user, id: '', parts: [text] })).toBe(
    'messages[0].id: expected 1 to 200 characters, got 0',
  );
  expect(await chat({ ...user, role: 'usr', parts: [text] })).toContain(
    'messages: expected a last message of the user, or one with answers to approvals, got one with the role "usr"',
  );
  const approval = { id: `r1.${'a'.repeat(64)}`, approved: true };
  const answer = { id: 'turn-1', role: 'assistant', parts: [{ type: 'x', approval }] };
  const short = { ...answer, parts: [{ type: 'x', approval: { id: 'r1.00', approved: true } }] };
  expect(await chat(short)).toBe(
    'messages[0].parts[0].approval.id: expected a request and its digest, as in r1.<64 hex digits>, got "r1.00"; give the id of the part that asks',
  );
  const unknown = await desk.send('/v1/ui/desk', { body: { id: 'none', messages: [answer] } });
  expect(unknown.body.error.message).toBe('id: there is no chat "none" with agent "desk"');
  const thread = async (message: object) =>
    await told('/v1/ag-ui/desk', { threadId: next('thread'), runId: 'r', messages: [message] });
  for (const content of ['', 5, undefined]) {
    expect(await thread({ ...user, content })).toBe(
      `messages[0].content: expected text, got ${content === undefined ? 'none' : JSON.stringify(content)}`,
    );
  }
  const stop = await desk.send('/v1/ag-ui/desk/cancel', { body: { threadId: 'none' } });
  expect(stop.body.error.message).toBe('threadId: there is no thread "none" with agent "desk"');
  const resume = [{ interruptId: approval.id, status: 'resolved', payload: { as: 'aprove' } }];
  const wrong = { threadId: 't', runId: 'r', messages: [], resume };
  expect(await told('/v1/ag-ui/desk', wrong)).toBe(
    `resume[0].payload.as: expected one of ${DECISIONS}, got "aprove"; did you mean approve?`,
  );
  // A run of a conversation has an id that follows from those of its principal, agent, and client.
  for (const [door, id] of begun) {
    const digest = createHash('sha256')
      .update(JSON.stringify(['ann', 'desk', id]))
      .digest('hex');
    await expect(desk.client.status(`${door}-${digest.slice(0, 24)}`)).rejects.toThrow('no run');
  }
});

test('rubbish of every kind is a refusal, and never a failure', { timeout: 60_000 }, async () => {
  const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
  const bodies = [
    '',
    '{',
    'null',
    '7',
    '"x"',
    '[]',
    '{}',
    deep,
    `{"agent":"desk","message":"x","context":${deep}}`,
    '{"a":12345678901234567890}',
    '{"__proto__":1,"constructor":2}',
    `{"id":${JSON.stringify('x'.repeat(5_000))}}`,
  ];
  const posts = [
    '/v1/runs',
    ...['messages', 'decisions', 'cancel', 'limits', 'forks', 'undo'].map(
      (one) => `${open}/${one}`,
    ),
    '/v1/responses',
    '/v1/chat/completions',
    '/v1/ui/desk',
    '/v1/ag-ui/desk',
    '/v1/ag-ui/desk/connect',
    '/v1/ag-ui/desk/cancel',
    '/mcp',
  ];
  const failed: string[] = [];
  for (const path of posts) {
    for (const body of bodies) {
      // Without a body, a run is canceled as a whole.
      if (path.endsWith(`${open}/cancel`) && ['', '{}'].includes(body)) continue;
      const { status, text } = await raw(path, { body });
      if (status < 400 || status >= 500) failed.push(`${path} ${body.slice(0, 40)}: ${text}`);
    }
  }
  expect(failed).toEqual([]);
  for (const id of ['a%2Fb', '%25', '%', '%E0%A4%A', 'a%00b', '%F0%9F%98%80', 'x'.repeat(1_500)]) {
    for (const path of [`/v1/runs/${id}`, `/v1/runs/${id}/events`, `/v1/responses/${id}`]) {
      const { status, error } = await raw(path);
      expect([path, status, (error.message ?? '').length < 400]).toEqual([path, 404, true]);
    }
  }
});
