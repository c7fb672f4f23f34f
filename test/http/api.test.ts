import { once } from 'node:events';
import { createServer } from 'node:net';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NoServerError } from '../../src/core/errors.js';
import { HttpRequestError, httpClient } from '../../src/http.js';
import { OPERATIONS } from '../../src/http/operations.js';
import type { StreamEvent } from '../../src/live/stream.js';
import { gate } from '../support/gate.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;

beforeAll(async () => {
  desk = await openHttpDesk(['ann', 'bob', 'eve'], {
    principals: {
      ann: { rights: { '*': 'all' } },
      bob: { rights: { desk: ['start'], talker: 'all' } },
      eve: { rights: { other: 'all' } },
    },
  });
});
afterAll(() => desk.close());

const newId = (): string => `http/${randomUUID()}`;
const path = (id: string, rest = ''): string => `/v1/runs/${encodeURIComponent(id)}${rest}`;
const clientFor = (name: string) => httpClient({ url: desk.url, key: keyOf(name) });

describe('the client, made from the same schemas', () => {
  test('drives a run through all operations, whose answers fit their schemas', async () => {
    const api = clientFor('ann');
    const id = newId();
    const seen: string[] = [];
    const checked = <T>(name: keyof typeof OPERATIONS, answer: T): T => {
      expect({ name, fault: OPERATIONS[name].output.safeParse(answer).error }).toEqual({ name });
      seen.push(name);
      return answer;
    };
    expect(checked('whoAmI', await api.whoAmI({}))).toEqual({
      name: 'ann',
      groups: [],
      verified: true,
    });
    const { agents } = checked('listAgents', await api.listAgents({}));
    expect(agents.map(({ name }) => name)).toEqual(['desk', 'other', 'talker']);
    expect(agents[0]?.limits).toEqual({ turn: { steps: '50', toolCalls: '200' }, run: {} });
    checked('startRun', await api.startRun({ agent: 'desk', message: 'pay 7', id, open: true }));
    await expect.poll(async () => (await api.getRun({ run: id })).pending.length).toBe(1);
    const status = checked('getRun', await api.getRun({ run: id }));
    expect(status).toMatchObject({ agent: 'desk', status: 'waiting_decision' });
    const { requests } = checked('listRequests', await api.listRequests({ run: id }));
    expect(requests.map(({ run }) => run)).toEqual([id]);
    const request = checked('getRequest', await api.getRequest({ run: id, request: 'r1' }));
    expect(request.arguments).toBe('{"euros":7}');
    const decision = { request: 'r1', digest: request.digest, as: 'approve' } as const;
    const decided = await api.decide({ run: id, decisions: [decision] });
    expect(checked('decide', decided)).toEqual({ receipts: [{ request: 'r1', as: 'approve' }] });
    const result = checked('getResult', await api.getResult({ run: id, turn: 1 }));
    expect(result.outcome).toMatchObject({ status: 'completed', answer: 'done: paid 7' });
    const sent = await api.sendMessage({ run: id, message: 'hello', id: 'm-1' });
    expect(checked('sendMessage', sent)).toMatchObject({ delivered: true, turn: 2 });
    expect((await api.getResult({ run: id, turn: 2 })).outcome?.answer).toBe('you said: hello');
    const { messages } = checked('getTranscript', await api.getTranscript({ run: id, from: 1 }));
    expect(messages.map(({ role }) => role)).toEqual([
      'assistant',
      'tool',
      'assistant',
      'user',
      'assistant',
    ]);
    expect(checked('getTurns', await api.getTurns({ run: id })).turns).toHaveLength(2);
    expect(checked('getGraph', await api.getGraph({ run: id })).mermaid).toMatch(/^flowchart TD/);
    const limits = await api.setLimits({ run: id, limits: { steps: 3 } });
    expect(checked('setLimits', limits).turn.steps).toBe(3);
    checked('pauseRun', await api.pauseRun({ run: id }));
    expect((await api.getRun({ run: id })).status).toBe('paused');
    checked('resumeRun', await api.resumeRun({ run: id }));
    const undone = api.undoCall({ run: id, call: request.call ?? '' });
    await expect(undone).rejects.toMatchObject({ status: 409, code: 'refused' });
    seen.push('undoCall');
    checked('closeRun', await api.closeRun({ run: id }));
    const { rows } = checked('listRuns', await api.listRuns({ idPrefix: id }));
    expect(rows.map((row) => row.id)).toEqual([id]);
    const late = api.cancelRun({ run: id });
    await expect(late).rejects.toMatchObject({ status: 409, code: 'run_ended' });
    const fork = { run: id, id: `${id}-fork`, at: 5, message: 'once more' } as const;
    expect(checked('forkRun', await api.forkRun(fork))).toEqual({ id: fork.id, repeated: false });
    expect((await api.forkRun(fork)).repeated).toBe(true);
    const forked = await api.getResult({ run: fork.id });
    expect(forked.outcome?.answer).toBe('you said: once more');
    const other = await api.startRun({ agent: 'desk', id: `${id}-other`, open: true });
    checked('cancelRun', await api.cancelRun({ run: other.id }));
    expect(seen.toSorted()).toEqual(Object.keys(OPERATIONS).toSorted());
    expect(desk.paid.filter((euros) => euros === 7)).toHaveLength(1);
  });

  test('rejects with `no_server`, the address, and the cause if no server answers', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const address = closed.address();
    const port = typeof address === 'object' ? address?.port : null;
    closed.close();
    const url = `http://127.0.0.1:${port}`;
    const failure = await httpClient({ url })
      .getRun({ run: 'x' })
      .catch((error: unknown) => error);
    expect(NoServerError.isInstance(failure)).toBe(true);
    expect(failure).toMatchObject({
      code: 'no_server',
      message: `no server answers at ${url} (ECONNREFUSED, 4 tries); start one with: npx perdure serve, or correct \`url\``,
      cause: { message: 'fetch failed' },
    });
    const reset = async (): Promise<Response> => await Promise.reject(new TypeError('lost'));
    await expect(httpClient({ url, fetch: reset }).pauseRun({ run: 'x' })).rejects.toThrow(
      '(lost, 4 tries); a start or a message may still take effect; ',
    );
    expect(() => httpClient({ url: 'localhost:8788' })).toThrow(
      'url: expected the address of a server, such as "http://127.0.0.1:8788", got "localhost:8788"',
    );
  });

  test('rejects with code, message, and fix', async () => {
    const api = clientFor('ann');
    const failure = await api.getRun({ run: 'missing' }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(HttpRequestError);
    expect(failure).toMatchObject({
      status: 404,
      code: 'no_run',
      message: 'run: there is no run "missing"',
      fix: 'GET /v1/runs lists the runs that you may read',
    });
    const start = { agent: 'dsk', message: 'x' };
    await expect(api.startRun(start)).rejects.toMatchObject({ status: 400, code: 'input' });
    const unknown = await desk.send('/v1/runs', { body: { agent: 'desk', mesage: 'x' } });
    expect(unknown.body.error).toMatchObject({
      code: 'input',
      message: '"mesage": expected a field of this request',
      fix: 'did you mean "message"?',
    });
    const other = await desk.send('/v1/runs', { body: { agent: 'desk', message: 'x', qqq: 1 } });
    expect(other.body.error.message).toMatch(/^"qqq": expected one of [\w, ]+$/);
    expect((await desk.send('/v1/nothing')).body.error.code).toBe('not_found');
  });

  test('keeps quoted values whole, whatever they hold', async () => {
    const errorOf = async (rest: string) => (await desk.send(`/v1/runs/${rest}`)).body.error;
    const lists = 'GET /v1/runs lists the runs that you may read';
    const named = await errorOf(encodeURIComponent('a; b'));
    expect([named.message, named.fix]).toEqual(['run: there is no run "a; b"', lists]);
    const quoted = await errorOf(encodeURIComponent('a"; b'));
    expect([quoted.message, quoted.fix]).toEqual(['run: there is no run "a\\"; b"', lists]);
    const { id } = await clientFor('ann').startRun({ agent: 'other', message: 'x' });
    const after = encodeURIComponent('~x; '.repeat(40));
    const long = await errorOf(`${id}/events?after=${after}`);
    expect([long.message, long.fix]).toEqual([
      expect.stringMatching(/^after: expected the position of an event, got "~x; .*…$/),
      'omit it for all events',
    ]);
  });

  test('is refused by a run with its reason', async () => {
    const { id, request } = await desk.asking(11);
    const api = clientFor('ann');
    const decisions = [{ request: request.id, digest: '0'.repeat(64), as: 'approve' as const }];
    await expect(api.decide({ run: id, decisions })).rejects.toMatchObject({
      status: 409,
      code: 'changed',
      reason: 'wrong_digest',
    });
    expect(desk.paid).not.toContain(11);
  });
});

describe('a request that is sent again', () => {
  test('starts one run: by its key, and by its id', async () => {
    const body = { agent: 'other', message: 'once' };
    const headers = { 'idempotency-key': randomUUID() };
    const first = await desk.send('/v1/runs', { body, headers });
    const again = await desk.send('/v1/runs', { body, headers });
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.body).toEqual({ id: first.body.id, repeated: true });
    const changed = { ...body, message: 'twice' };
    const other = await desk.send('/v1/runs', { body: changed, headers });
    expect([other.status, other.body.error.code]).toEqual([409, 'id_taken']);
    const key = headers['idempotency-key'];
    expect(other.body.error.message).toBe(
      `Idempotency-Key: expected a new key, got "${key}", which started run ${first.body.id} for another request`,
    );
    expect(other.headers.get('x-should-retry')).toBe('false');
    // Another principal has its own keys.
    const ofEve = await desk.send('/v1/runs', { body, headers, as: 'eve' });
    expect(ofEve.body).toMatchObject({ repeated: false });
    expect(ofEve.body.id).not.toBe(first.body.id);
  });

  test('has one effect if it is a message or a decision', async () => {
    const id = newId();
    await desk.send('/v1/runs', { body: { agent: 'desk', message: 'pay 12', id, open: true } });
    const headers = { 'idempotency-key': 'm-7' };
    const body = { message: 'and hello' };
    const sent = await desk.send(path(id, '/messages'), { body, headers });
    const again = await desk.send(path(id, '/messages'), { body, headers });
    // The id comes from the key and its principal, so that the key of another one is another message.
    expect(sent.body.messageId).toMatch(/^http-[0-9a-f]{24}$/);
    expect(again.body).toEqual(sent.body);
    await expect.poll(async () => (await desk.client.status(id)).pending.length).toBe(1);
    const [request] = (await desk.client.status(id)).pending;
    const decisions = [{ request: 'r1', digest: request?.digest, as: 'approve' }];
    const clicks = await Promise.all(
      [1, 2, 3].map(() => desk.send(path(id, '/decisions'), { body: { decisions } })),
    );
    expect(clicks.map(({ status }) => status)).toEqual([200, 200, 200]);
    await expect
      .poll(() => desk.client.result(id, { turn: 2 }))
      .toMatchObject({ status: 'completed' });
    expect(desk.paid.filter((euros) => euros === 12)).toHaveLength(1);
    const transcript = await desk.client.transcript(id);
    expect(transcript.messages.filter(({ text }) => text === 'and hello')).toHaveLength(1);
  });
});

describe('GET /v1/runs/{run}/events', () => {
  test('continues after Last-Event-ID, and ends with 204', async () => {
    const second = gate();
    desk.talker.on('http words', async ({ emit }) => {
      emit('one ');
      await second.wait();
      emit('two');
      return 'one two';
    });
    const id = newId();
    const api = clientFor('bob');
    await api.startRun({ agent: 'talker', message: 'http words', id });
    const over = new AbortController();
    const before: StreamEvent[] = [];
    for await (const event of api.events(id, { signal: over.signal })) {
      before.push(event);
      if (event.type === 'delta') break;
    }
    over.abort();
    second.release();
    const after: StreamEvent[] = [];
    const position = before.at(-1)?.position ?? '';
    for await (const event of api.events(id, { after: position })) after.push(event);
    const deltas = [...before, ...after].flatMap((event) =>
      event.type === 'delta' ? [event.text] : [],
    );
    // The end of the text may be durable before a reader is back; then it is not streamed.
    expect(['one ', 'one two']).toContain(deltas.join(''));
    const replies = [...before, ...after].flatMap((event) =>
      event.type === 'model-replied' ? [event.message.text] : [],
    );
    expect(replies).toEqual(['one two']);
    expect(after.at(-1)?.type).toBe('run-ended');
    const last = { 'last-event-id': after.at(-1)?.position ?? '' };
    const past = await desk.send(path(id, '/events'), { headers: last, as: 'bob' });
    expect(past.status).toBe(204);
    const bad = await desk.send(path(id, '/events?after=x'), { as: 'bob' });
    expect([bad.status, bad.body.error.code]).toEqual([400, 'input']);
  });
});

test('a wrong request names the field, the value, and the fix', async () => {
  const told = async (url: string, body?: object) => {
    const answered = await desk.send(url, body === undefined ? {} : { body });
    const { message, fix } = answered.body.error;
    return [answered.status, message, fix];
  };
  const fix = 'give digits only';
  for (const name of ['turn', 'wait']) {
    const answered = await told(`/v1/runs/any/result?${name}=one`);
    expect(answered).toEqual([400, `${name}: expected a whole number, got "one"`, fix]);
  }
  const limited = [400, 'limit: expected a whole number, got "zzz"', fix];
  expect(await told('/v1/runs?limit=zzz')).toEqual(limited);
  const chat = await told('/v1/ui/desk', { messages: [] });
  const form =
    'send { "id": "CHAT", "messages": [{ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": "…" }] }] }, as useChat does';
  expect(chat).toEqual([400, 'id: missing, expected string', form]);
  const ofSystem = { id: 'c', messages: [{ id: 'm', role: 'system', parts: [] }] };
  expect((await told('/v1/ui/desk', ofSystem)).at(-1)).toBe(form);
  const thread = await told('/v1/ag-ui/desk', { messages: [] });
  expect(thread.slice(0, 2)).toEqual([400, 'threadId: missing, expected string']);
  expect(thread[2]).toContain('send { "threadId": "THREAD", "runId": "RUN", "messages": [');
  for (const url of ['/v1/runs', '/v1/ui/desk', '/v1/ag-ui/desk', '/v1/chat/completions']) {
    const list = await desk.send(url, { body: [] });
    expect(JSON.stringify(list.body.error)).toContain('send a JSON object');
  }
  const empty = await told('/v1/ui/desk', { id: 'c', messages: [] });
  expect(empty[1]).toBe('messages: expected at least one message, got []');
});

describe('events after `now`', () => {
  /** A run of the talker whose reply is held, once its model is called. */
  async function held() {
    const [begun, hold] = [gate(), gate()];
    const message = `held ${randomUUID()}`;
    desk.talker.on(message, async () => {
      begun.release();
      await hold.wait();
      return 'said meanwhile';
    });
    const { id } = await clientFor('bob').startRun({ agent: 'talker', message });
    await begun.wait();
    return { id, hold };
  }

  test('go on where they began if the connection breaks before the first one', async () => {
    const { id, hold } = await held();
    const ended = gate();
    let requests = 0;
    const api = httpClient({
      url: desk.url,
      key: keyOf('bob'),
      async fetch(request) {
        const response = await fetch(request);
        requests += 1;
        if (requests > 1) return response;
        await response.body?.cancel();
        const body = new ReadableStream<Uint8Array>({
          async pull(controller) {
            await ended.wait();
            controller.close();
          },
        });
        return new Response(body, { headers: response.headers });
      },
    });
    const reading = (async () => {
      const texts: unknown[] = [];
      for await (const event of api.events(id, { after: 'now' })) {
        texts.push(event.type === 'model-replied' ? event.message.text : event.type);
      }
      return texts;
    })();
    await expect.poll(() => requests).toBe(1);
    hold.release();
    await desk.client.result(id);
    ended.release();
    const texts = await reading;
    expect(texts).toContain('said meanwhile');
    expect(texts).not.toContain('run-started');
    expect(texts.at(-1)).toBe('run-ended');
    const past = await desk.send(path(id, '/events?after=now'), { as: 'bob' });
    expect(past.status).toBe(204);
  });

  test('begin with their position, which a browser sends back', async () => {
    const { id, hold } = await held();
    const headers = { authorization: `Bearer ${keyOf('bob')}` };
    const open = async (more: Readonly<Record<string, string>>): Promise<Response> =>
      await fetch(`${desk.url}${path(id, '/events?after=now')}`, {
        headers: { ...headers, ...more },
      });
    const first = await open({});
    hold.release();
    await desk.client.result(id);
    const [, position = ''] = /^id: (\S+)\n\n/m.exec(await first.text()) ?? [];
    expect(position).not.toBe('');
    const again = await (await open({ 'last-event-id': position })).text();
    expect(again).toContain('said meanwhile');
    expect(again).not.toContain('run-started');
  });
});

test('the OpenAPI document is complete, and its references exist', async () => {
  const { body: document } = await desk.send('/v1/openapi.json', { as: null });
  expect(document.openapi).toBe('3.1.0');
  const operations = Object.values<Record<string, { operationId: string }>>(document.paths)
    .flatMap((entry) => Object.values(entry))
    .map(({ operationId }) => operationId);
  expect(operations.toSorted()).toEqual([...Object.keys(OPERATIONS), 'streamEvents'].toSorted());
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
  expect(refs.length).toBeGreaterThan(5);
  for (const [, name = ''] of refs) expect(document.components.schemas).toHaveProperty([name]);
});
