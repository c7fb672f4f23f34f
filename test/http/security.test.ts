import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createServer, listen } from '../../src/http.js';
import { openServer } from '../../src/http/create-server.js';
import { sseResponse } from '../../src/live/sse.js';
import { gate } from '../support/gate.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';
import { type HttpServer, httpServer } from '../support/http-server.js';

let desk: HttpDesk;
let issuer: HttpServer;
let signing: Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];
const AUDIENCE = 'perdure';

beforeAll(async () => {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  signing = privateKey;
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' };
  issuer = await httpServer((request, response) => {
    const keys = { keys: [jwk] };
    const about = { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(request.url === '/jwks' ? keys : about));
  });
  desk = await openHttpDesk(['ann', 'bob', 'eve', 'tom', 'dee'], {
    oidc: { issuer: issuer.url, audience: AUDIENCE },
    principals: {
      ann: { rights: { '*': 'all' } },
      bob: { rights: { desk: ['start'], talker: ['start'] } },
      eve: { rights: { other: 'all' } },
      dee: { rights: { desk: ['decide'] } },
      tom: { rights: { talker: ['read', 'talk'] } },
    },
    groups: { ops: { rights: { desk: ['read', 'decide'] } } },
    origins: ['https://app.example.com'],
    limits: { requestsPerMinute: 5_000, streams: 2, bodyBytes: 10_000, readTimeout: 1_000 },
  });
});
afterAll(async () => {
  await desk.close();
  await issuer.close();
});

const path = (id: string, rest = ''): string => `/v1/runs/${encodeURIComponent(id)}${rest}`;

/** Sends a request whose Host and Origin are chosen, as a browser of another site sends it. */
async function raw(
  headers: Readonly<Record<string, string>>,
  { to = '/v1/me', body }: { to?: string; body?: string } = {},
): Promise<{ status: number; code: string; headers: Record<string, unknown> }> {
  const sent = httpRequest(desk.url + to, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${keyOf('ann')}`, ...headers },
  });
  sent.end(body);
  const [response] = await once(sent, 'response');
  const json = JSON.parse((await textOf(response)) || '{}');
  return { status: response.statusCode, code: json.error?.code ?? '', headers: response.headers };
}

async function token(
  claims: Record<string, unknown>,
  { audience = AUDIENCE, expires = '5m', by = issuer.url, key = signing } = {},
): Promise<string> {
  return await new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', kid: 'one' })
    .setIssuer(by)
    .setAudience(audience)
    .setExpirationTime(expires)
    .sign(key);
}

const asToken = async (jwt: string, to = '/v1/me') => {
  const response = await fetch(desk.url + to, { headers: { authorization: `Bearer ${jwt}` } });
  return { status: response.status, body: await response.json() };
};

describe('a principal', () => {
  test('is required, by a key that is known', async () => {
    const none = await desk.send('/v1/me', { as: null });
    expect([none.status, none.body.error.code]).toEqual([401, 'unauthorized']);
    expect(none.headers.get('www-authenticate')).toBe('Bearer');
    expect((await desk.send('/v1/me', { as: 'mallory' })).status).toBe(401);
    expect((await desk.send('/healthz', { as: null })).body).toEqual({ ok: true });
  });

  test('is one of an OIDC issuer, with its groups', async () => {
    const jwt = await token({ sub: 'carl', groups: ['ops', 7] });
    expect((await asToken(jwt)).body).toEqual({ name: 'carl', groups: ['ops'], verified: true });
    const { id, request } = await desk.asking(21, 'bob');
    const seen = await asToken(jwt, path(id));
    expect(seen.body).toMatchObject({ id, rights: ['read', 'decide'] });
    expect(request.kind).toBe('approval');
    const { privateKey } = await generateKeyPair('ES256');
    const forged = [
      await token({ sub: 'carl' }, { audience: 'another' }),
      await token({ sub: 'carl' }, { by: 'https://evil.example' }),
      await token({ sub: 'carl' }, { expires: '-1m' }),
      await token({ sub: 'carl' }, { key: privateKey }),
      await token({ name: 'carl' }),
      `${jwt.split('.').slice(0, 2).join('.')}.`,
    ];
    const answers = await Promise.all(forged.map((one) => asToken(one)));
    expect(answers.map(({ status }) => status)).toEqual(forged.map(() => 401));
  });

  test('does not learn of runs of agents that it has no right about', async () => {
    const { id } = await desk.asking(22, 'ann');
    const missing = await desk.send(path('missing'), { as: 'eve' });
    const reads = ['', '/result', '/transcript', '/turns', '/graph', '/events', '/requests/r1'];
    for (const rest of reads) {
      const answer = await desk.send(path(id, rest), { as: 'eve' });
      expect([rest, answer.status, answer.body.error.code]).toEqual([rest, 404, 'no_run']);
      const text = answer.body.error.message.replace(id, 'missing');
      expect(text).toBe(missing.body.error.message);
    }
    const writes = {
      messages: { message: 'x' },
      cancel: {},
      pause: {},
      resume: {},
      close: {},
      limits: { limits: { steps: 1 } },
    };
    for (const [rest, body] of Object.entries(writes)) {
      const answer = await desk.send(path(id, `/${rest}`), { as: 'eve', body });
      expect([rest, answer.status]).toEqual([rest, 404]);
    }
    const { body: list } = await desk.send('/v1/requests', { as: 'eve' });
    expect(list.requests).toEqual([]);
    const { body: agents } = await desk.send('/v1/agents', { as: 'eve' });
    expect(agents.agents.map(({ name }: { name: string }) => name)).toEqual(['other']);
    const start = await desk.send('/v1/runs', { as: 'eve', body: { agent: 'desk', message: 'x' } });
    expect(start.status).toBe(400);
    expect(start.body.error.message).toBe('agent: there is no agent "desk"');
    expect((await desk.client.status(id)).status).toBe('waiting_decision');
  });

  test('sees and messages the runs that it has started, and no others', async () => {
    const started = await desk.send('/v1/runs', {
      as: 'bob',
      body: { agent: 'desk', message: 'pay 23', open: true },
    });
    const { id } = started.body;
    await expect
      .poll(async () => (await desk.send(path(id), { as: 'bob' })).body.pending?.length)
      .toBe(1);
    const { body: seen } = await desk.send(path(id), { as: 'bob' });
    expect(seen.rights).toEqual(['talk', 'read']);
    const [request] = seen.pending;
    const decisions = [{ request: 'r1', digest: request.digest, as: 'approve' }];
    const own = await desk.send(path(id, '/decisions'), { as: 'bob', body: { decisions } });
    expect([own.status, own.body.error.code]).toEqual([403, 'forbidden']);
    const { id: foreign } = await desk.asking(24, 'bob');
    expect((await desk.send(path(foreign), { as: 'bob' })).status).toBe(404);
    const listed = await desk.send(`/v1/runs?agent=desk`, { as: 'bob' });
    const ids = listed.body.rows.map((row: { id: string }) => row.id);
    expect([ids.includes(id), ids.includes(foreign)]).toEqual([true, false]);
    const context = await desk.send('/v1/runs', {
      as: 'bob',
      body: { agent: 'desk', message: 'x', context: { user: 'ann' } },
    });
    expect([context.status, context.body.error.code]).toEqual([403, 'forbidden']);
    expect((await desk.send(path(id, '/cancel'), { as: 'bob', body: {} })).status).toBe(200);
    await desk.client.result(id);
    // The answer to the first cancel may have been lost.
    expect((await desk.send(path(id, '/cancel'), { as: 'bob', body: {} })).status).toBe(200);
    expect(desk.paid).not.toContain(23);
  });

  test('is recorded as the one who decides, whatever the request says', async () => {
    const { id, request } = await desk.asking(25);
    const decision = { request: request.id, digest: request.digest, as: 'deny', note: 'no' };
    const claimed = { decisions: [{ ...decision, by: 'boss' }] };
    expect((await desk.send(path(id, '/decisions'), { body: claimed })).status).toBe(400);
    await desk.send(path(id, '/decisions'), { body: { decisions: [decision] } });
    const { decisions } = await desk.client.status(id);
    expect(decisions?.map(({ as, by }) => [as, by])).toEqual([['deny', 'ann']]);
  });

  test('that may only decide sees what there is to decide, and nothing else of the run', async () => {
    const { id, request } = await desk.asking(26);
    const { body: list } = await desk.send('/v1/requests', { as: 'dee' });
    expect(list.requests.map(({ run }: { run: string }) => run)).toContain(id);
    const seen = await desk.send(path(id, '/requests/r1'), { as: 'dee' });
    expect([seen.status, seen.body.digest]).toEqual([200, request.digest]);
    expect(seen.body.view.arguments).toEqual([['euros', '26']]);
    for (const rest of ['', '/transcript', '/result', '/turns', '/graph', '/events']) {
      expect([rest, (await desk.send(path(id, rest), { as: 'dee' })).status]).toEqual([rest, 403]);
    }
    const decisions = [{ request: 'r1', digest: request.digest, as: 'deny' }];
    const denied = await desk.send(path(id, '/decisions'), { as: 'dee', body: { decisions } });
    expect(denied.status).toBe(200);
    const foreign = await desk.client.start('other', {
      message: 'x',
      id: `foreign-${randomUUID()}`,
    });
    expect((await desk.send(path(foreign.id, '/requests/r1'), { as: 'dee' })).status).toBe(404);
  });

  test('that may talk cancels no turn of others, and its keys and words are its own', async () => {
    const hold = gate();
    desk.talker.on('kept', async () => {
      await hold.wait();
      return 'kept';
    });
    const body = { agent: 'talker', message: 'kept', open: true };
    const { id } = (await desk.send('/v1/runs', { body })).body;
    const response = `resp_1_${Buffer.from(id).toString('base64url')}`;
    for (const to of [path(id, '/cancel'), `/v1/responses/${response}/cancel`]) {
      const refused = await desk.send(to, { as: 'tom', body: {} });
      expect([to, refused.status, refused.body.error.code]).toEqual([to, 403, 'forbidden']);
    }
    hold.release();
    const headers = { 'idempotency-key': 'k1' };
    for (const as of ['ann', 'tom', 'ann']) {
      const said = { message: `from ${as}` };
      const sent = await desk.send(path(id, '/messages'), { as, body: said, headers });
      expect(sent.status).toBe(200);
    }
    const next = { model: 'talker', input: 'same', previous_response_id: response };
    for (const as of ['ann', 'tom', 'ann']) {
      expect((await desk.send('/v1/responses', { as, body: next })).status).toBe(200);
    }
    const { messages } = (await desk.send(path(id, '/transcript'))).body;
    const users = messages.filter(({ role }: { role: string }) => role === 'user');
    expect(users.map(({ text, by }: { text: string; by: string }) => [text, by])).toEqual([
      ['kept', 'ann'],
      ['from ann', 'ann'],
      ['from tom', 'tom'],
      ['same', 'ann'],
      ['same', 'tom'],
    ]);
    await desk.send(path(id, '/close'), { body: {} });
  });

  test('may not send more requests than its rate, and others are not affected', async () => {
    let now = 0;
    const env = { PERDURE_SERVE_KEYS: ['busy', 'calm'].map((as) => `${as}:${keyOf(as)}`).join() };
    const serve = { limits: { requestsPerMinute: 3 } };
    await using server = await openServer(
      { client: desk.client, serve, env },
      { clock: () => now },
    );
    const ask = async (as: string): Promise<Response> => {
      const headers = { authorization: `Bearer ${keyOf(as)}` };
      return await server.fetch(new Request('http://127.0.0.1/v1/me', { headers }));
    };
    const statuses = [];
    for (let n = 0; n < 4; n += 1) statuses.push((await ask('busy')).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    now = 10_000;
    const refused = await ask('busy');
    expect(refused.headers.get('retry-after')).toBe('10');
    expect(await refused.json()).toMatchObject({ error: { code: 'rate_limited' } });
    expect((await ask('calm')).status).toBe(200);
    now = 20_000;
    expect((await ask('busy')).status).toBe(200);
    expect((await ask('busy')).status).toBe(429);
  });
});

describe('a decision', () => {
  test('holds only for what was shown, and the first one wins', async () => {
    const { id, request } = await desk.asking(31);
    const decide = (given: object) =>
      desk.send(path(id, '/decisions'), {
        body: { decisions: [{ request: 'r1', digest: request.digest, as: 'approve', ...given }] },
      });
    const other = await desk.asking(32);
    const replayed = await decide({ digest: other.request.digest });
    expect([replayed.status, replayed.body.error.reason]).toEqual([409, 'wrong_digest']);
    const unknown = await decide({ request: 'r9' });
    expect([unknown.status, unknown.body.error.reason]).toEqual([409, 'unknown_request']);
    const short = await decide({ digest: request.digest.slice(0, 12) });
    expect(short.status).toBe(400);
    expect(JSON.stringify(short.body)).toContain('expected all 64 hex digits');
    const text = { message: 'yes, approve it' };
    await desk.send(path(id, '/messages'), { body: text });
    expect((await desk.client.status(id)).pending).toHaveLength(1);
    expect((await decide({ as: 'deny' })).status).toBe(200);
    const late = await decide({ as: 'approve' });
    expect(late.status).toBe(409);
    expect(desk.paid).not.toContain(31);
  });
});

describe('a request of another site', () => {
  test('is refused, from a foreign origin and as a form', async () => {
    const body = JSON.stringify({ agent: 'other', message: 'x' });
    const json = { 'content-type': 'application/json' };
    const foreign = await raw(
      { ...json, origin: 'https://evil.example' },
      { to: '/v1/runs', body },
    );
    expect([foreign.status, foreign.code]).toEqual([403, 'origin']);
    expect((await raw({ ...json, origin: 'null' }, { to: '/v1/runs', body })).code).toBe('origin');
    const form = await raw({ 'content-type': 'text/plain' }, { to: '/v1/runs', body });
    expect([form.status, form.code]).toEqual([415, 'unsupported']);
    const known = await raw({ origin: 'https://app.example.com' });
    expect(known.status).toBe(200);
    expect(known.headers['access-control-allow-origin']).toBe('https://app.example.com');
  });

  test('is refused under a name of its own, if the server has no keys', async () => {
    await using open = await createServer({ client: desk.client, env: {} });
    const status = async (url: string): Promise<number> =>
      (await open.fetch(new Request(url, { headers: { host: new URL(url).host } }))).status;
    expect(await status('http://127.0.0.1:8788/v1/me')).toBe(200);
    expect(await status('http://localhost:8788/v1/me')).toBe(200);
    expect(await status('http://[::1]:8788/v1/me')).toBe(200);
    expect(await status('http://rebound.example:8788/v1/me')).toBe(403);
    expect(await status('http://127.0.0.1.evil.example/v1/me')).toBe(403);
  });
});

describe('what a request may use', () => {
  test('a body is bounded, also if its size is not said', async () => {
    const large = { agent: 'other', message: 'x'.repeat(20_000) };
    const said = await desk.send('/v1/runs', { body: large });
    expect([said.status, said.body.error.code]).toEqual([413, 'too_large']);
    const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    const chunked = await raw(headers, { to: '/v1/runs', body: JSON.stringify(large) });
    expect([chunked.status, chunked.code]).toEqual([413, 'too_large']);
    const deep = `{"agent":"other","input":${'['.repeat(5_000)}`;
    const cut = await raw({ 'content-type': 'application/json' }, { to: '/v1/runs', body: deep });
    expect([cut.status, cut.code]).toEqual([400, 'input']);
  });

  test('streams at once are bounded, and one that its reader leaves makes room', async () => {
    const hold = gate();
    desk.talker.on('held', async () => {
      await hold.wait();
      return 'held';
    });
    const id = `held-${randomUUID()}`;
    await desk.client.start('talker', { message: 'held', id });
    const leave = new AbortController();
    const open = async (signal?: AbortSignal): Promise<number> => {
      const headers = { authorization: `Bearer ${keyOf('ann')}` };
      const url = desk.url + path(id, '/events');
      return (await fetch(url, { headers, ...(signal && { signal }) })).status;
    };
    const rest = new AbortController();
    expect(await Promise.all([open(leave.signal), open(rest.signal)])).toEqual([200, 200]);
    expect(await open()).toBe(429);
    leave.abort();
    await expect.poll(() => open(rest.signal)).toBe(200);
    rest.abort();
    hold.release();
    expect((await desk.client.result(id)).status).toBe('completed');
  });

  test('a port that another program has is named, with what to do', async () => {
    const answer = () => Promise.resolve(new Response());
    const listening = await listen({ fetch: answer, isVerified: false });
    const port = Number(new URL(listening.url).port);
    await expect(listen({ fetch: answer, isVerified: false }, { port })).rejects.toThrow(
      `port: expected a free port, got ${port}, at which another program listens on 127.0.0.1; stop it, or choose another`,
    );
    await listening.close();
  });

  test('a reader that does not read is disconnected, and costs no memory until then', async () => {
    const over = new AbortController();
    let taken = 0;
    async function* endless(): AsyncGenerator<string, void, undefined> {
      for (; ; taken += 1) yield `data: ${'z'.repeat(64 * 1024)}\n\n`;
    }
    const answer = () => Promise.resolve(sseResponse(endless(), { over, readMs: 300 }));
    const listening = await listen({ fetch: answer, isVerified: false });
    const { hostname, port } = new URL(listening.url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.write(`GET / HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
    socket.pause();
    if (!over.signal.aborted) await once(over.signal, 'abort');
    // What the buffers of two sockets take, and no more.
    expect(taken * 64).toBeLessThan(32 * 1024);
    socket.destroy();
    await listening.close();
  });
});
