import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { partsOfClient } from '../../src/client/create-client.js';
import { listen } from '../../src/http.js';
import { openRunStream } from '../../src/http/api-routes.js';
import { openServer } from '../../src/http/create-server.js';
import { type Gate, gate } from '../support/gate.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

/** Requests that wait for a run, and streams: what they count for, and when they end. */
let desk: HttpDesk;

beforeAll(async () => {
  desk = await openHttpDesk(['ann', 'bob', 'eve'], { limits: { streams: 1 } });
});
afterAll(() => desk.close());

const responseOf = (run: string, turn = 1): string =>
  `/v1/responses/resp_${turn}_${Buffer.from(run).toString('base64url')}`;

/** A message whose reply is held until the gate is open. `begun`: the model was called. */
function heldText(): { readonly text: string; readonly begun: Gate; readonly hold: Gate } {
  const [begun, hold] = [gate(), gate()];
  const text = `held ${randomUUID()}`;
  desk.talker.on(text, async () => {
    begun.release();
    await hold.wait();
    return 'held';
  });
  return { text, begun, hold };
}

async function start(message: string): Promise<string> {
  return (await desk.client.start('talker', { message, id: `held-${randomUUID()}` })).id;
}

test('a request that waits for its answer counts as a stream, until its sender leaves', async () => {
  const followed = heldText();
  const id = await start(followed.text);
  const events = (as: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${desk.url}/v1/runs/${id}/events`, {
      ...init,
      headers: { authorization: `Bearer ${keyOf(as)}` },
    });
  const probe = async (as: string): Promise<number> => {
    const stop = new AbortController();
    const { status } = await events(as, { signal: stop.signal });
    stop.abort();
    return status;
  };
  const doors = { '/v1/responses': 'ann', '/v1/chat/completions': 'bob' };
  for (const [path, as] of Object.entries(doors)) {
    const { text, begun, hold } = heldText();
    const input = path === '/v1/responses' ? text : undefined;
    const messages = input === undefined ? [{ role: 'user', content: text }] : undefined;
    const body = { model: 'talker', input, messages };
    const leave = new AbortController();
    const waiting = fetch(desk.url + path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${keyOf(as)}`, 'content-type': 'application/json' },
      signal: leave.signal,
    }).catch((error: unknown) => error);
    await begun.wait();
    expect(await probe(as)).toBe(429);
    // Another one is refused before it starts anything.
    const refused = await desk.send(path, { as, body });
    expect([path, refused.status]).toEqual([path, 429]);
    leave.abort();
    await waiting;
    await expect.poll(() => probe(as)).toBe(200);
    hold.release();
  }
  // No reader is at the other end of these.
  for (let n = 0; n < 3; n += 1) {
    const head = await events('eve', { method: 'HEAD' });
    expect([head.status, head.headers.get('allow')]).toEqual([405, 'GET']);
  }
  followed.hold.release();
});

test('a wait for a result counts as a stream, also by a tool of MCP', async () => {
  const { text, hold } = heldText();
  const id = await start(text);
  const headers = { authorization: `Bearer ${keyOf('bob')}` };
  const client = new Client({ name: 'test', version: '1' });
  const url = new URL('/mcp', desk.url);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  const leave = new AbortController();
  const { signal } = leave;
  const stream = await fetch(`${desk.url}/v1/runs/${id}/events`, { headers, signal });
  expect(stream.status).toBe(200);
  const result = async (wait: number) =>
    await desk.send(`/v1/runs/${id}/result?wait=${wait}`, { as: 'bob' });
  const [waits, asks] = [await result(5), await result(0)];
  expect([waits.status, waits.body.error.code]).toEqual([429, 'rate_limited']);
  expect([asks.status, asks.body]).toEqual([200, { done: false, outcome: null }]);
  const tool = async () =>
    await client.callTool({ name: 'agent_result', arguments: { id, wait_seconds: 60 } });
  const refused = await tool();
  expect([refused.isError, JSON.stringify(refused.content)]).toEqual([
    true,
    expect.stringContaining('code: rate_limited'),
  ]);
  leave.abort();
  hold.release();
  await expect.poll(async () => (await tool()).structuredContent).toMatchObject({ answer: 'held' });
  await client.close();
});

test('a stream whose reader leaves while it is opened is closed', async () => {
  const { text, hold } = heldText();
  const id = await start(text);
  const place = partsOfClient(desk.client);
  const { streams } = place;
  await expect.poll(() => streams.size).toBe(0);
  const over = new AbortController();
  const opening = openRunStream(place, { run: id, over });
  over.abort();
  await opening;
  expect(streams.size).toBe(0);
  hold.release();
});

test('a wait is bounded: a response is still in progress, and a chat says where to read it', async () => {
  const env = { PERDURE_SERVE_KEYS: `ann:${keyOf('ann')}` };
  const server = await openServer({ client: desk.client, env }, { waitMs: 1 });
  const listening = await listen(server);
  const send = async (path: string, body: object) => {
    const response = await fetch(listening.url + path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${keyOf('ann')}`, 'content-type': 'application/json' },
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  const { text, hold } = heldText();
  const response = await send('/v1/responses', { model: 'talker', input: text });
  expect(response).toMatchObject({ status: 200, body: { status: 'in_progress' } });
  const messages = [{ role: 'user', content: text }];
  const chat = await send('/v1/chat/completions', { model: 'talker', messages });
  expect([chat.status, chat.headers.get('x-should-retry')]).toEqual([504, 'false']);
  expect(chat).toMatchObject({ body: { error: { code: 'not_ended' } } });
  hold.release();
  await listening.close();
});

test('a turn that the run does not have is no response', async () => {
  const { text, hold } = heldText();
  const id = await start(text);
  expect((await desk.send(responseOf(id))).status).toBe(200);
  const missing = [
    await desk.send(responseOf(id, 2)),
    await desk.send(`${responseOf(id, 2)}?stream=true`),
    await desk.send(`${responseOf(id, 2)}/cancel`, { body: {} }),
  ];
  expect(missing.map(({ status }) => status)).toEqual([404, 404, 404]);
  const previous = responseOf(id, 999).split('/').at(-1);
  const body = { model: 'talker', input: 'more', previous_response_id: previous };
  const next = await desk.send('/v1/responses', { body });
  expect([next.status, next.body.error.code]).toEqual([404, 'not_found']);
  expect((await desk.client.status(id)).queued).toBe(0);
  hold.release();
});

test('a request that is cut off in its body is no failure of the server', async () => {
  const gone = gate();
  const lines: string[] = [];
  const log = (line: string): void => void lines.push(line);
  const env = { PERDURE_SERVE_KEYS: `ann:${keyOf('ann')}` };
  const server = await openServer({ client: desk.client, env, log });
  const listening = await listen({
    isVerified: true,
    async fetch(request) {
      const answer = await server.fetch(request);
      gone.release();
      return answer;
    },
  });
  const { hostname, port } = new URL(listening.url);
  const socket = connect(Number(port), hostname);
  const head = [
    'POST /v1/runs HTTP/1.1',
    `Host: ${hostname}`,
    `Authorization: Bearer ${keyOf('ann')}`,
    'Content-Type: application/json',
    'Content-Length: 100',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n{`, () => socket.destroy());
  await gone.wait();
  expect(lines).toEqual([]);
  await listening.close();
});
