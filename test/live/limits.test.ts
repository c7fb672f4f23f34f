import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLiveHub, type LiveHub } from '../../src/live/hub.js';
import { deltasRoute } from '../../src/live/live-server.js';
import {
  defaultLimits,
  resolveLiveOptions,
  runToken,
  verifyToken,
} from '../../src/live/live-options.js';
import { startHttpServer, type LiveHttpServer } from '../../src/live/http-server.js';
import { request } from '../support/sse-reader.js';
import { LiveOptionsError } from '../../src/core/errors.js';

const SECRET = 's'.repeat(32);
const attempt = { segment: 's', activity: '1', attempt: 1, turn: 1, step: 1 };
const servers: LiveHttpServer[] = [];
const sockets: Socket[] = [];

afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await Promise.all(servers.map((server) => server.close()));
});

async function serve(limits: object = {}, token = ''): Promise<{ url: string; hub: LiveHub }> {
  const hub = createLiveHub();
  const place = resolveLiveOptions({ limits, token }, {});
  const server = await startHttpServer(place, { deltas: deltasRoute(hub) });
  servers.push(server);
  return { url: server.url, hub };
}

/** Opens a bare connection, and collects what the server sends until it closes. */
async function open(url: string): Promise<{ socket: Socket; all: Promise<string> }> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  let received = '';
  socket.setEncoding('utf8').on('data', (text: string) => (received += text));
  const all = once(socket, 'close').then(() => received);
  await once(socket, 'connect');
  return { socket, all };
}

/** Sends exactly these bytes, and returns the server's answer until it closes the connection. */
async function raw(url: string, bytes: string): Promise<string> {
  const { socket, all } = await open(url);
  socket.write(bytes);
  return await all;
}

async function status(url: string, headers: Readonly<Record<string, string>> = {}) {
  const response = await request(url, headers);
  const { error }: { error: string } = JSON.parse(await textOf(response));
  return [response.statusCode, error] as const;
}

/** Begins to read a stream, and returns the status. */
async function read(url: string): Promise<{ status: number; close: () => void }> {
  const response = await request(`${url}/runs/r/deltas`);
  response.on('error', () => undefined);
  response.resume();
  return { status: response.statusCode ?? 0, close: () => void response.destroy() };
}

const HEAD = 'GET /runs/r/deltas HTTP/1.1\r\nHost: localhost\r\n';

describe('the live port', () => {
  let url: string;
  beforeAll(async () => {
    ({ url } = await serve({ streams: 3, streamsPerClient: 2, waiting: 4, headersTimeout: 150 }));
  });

  test('answers 429 to a client with too many streams until it closes one', async () => {
    const [one, two, three] = [await read(url), await read(url), await read(url)];
    expect([one.status, two.status, three.status]).toEqual([200, 200, 429]);
    one.close();
    let again = await read(url);
    while (again.status === 429) again = await read(url);
    expect(again.status).toBe(200);
    for (const each of [two, again]) each.close();
  });

  test('answers 503 if there are too many streams of all clients', async () => {
    const { url: other } = await serve({ streams: 1, streamsPerClient: 5 });
    const first = await read(other);
    const [code, text] = await status(`${other}/runs/r/deltas`);
    expect([first.status, code]).toEqual([200, 503]);
    expect(text).toContain('streams: at most 1 at once');
    first.close();
  });

  test('closes the oldest of the connections without a request, and serves requests', async () => {
    const { url: patient } = await serve({ waiting: 3 });
    const idle = [await open(patient), await open(patient), await open(patient)];
    const asking = await read(patient);
    expect(asking.status).toBe(200);
    expect(await idle[0]?.all).toBe('');
    const more = await open(patient);
    expect(more.socket.destroyed).toBe(false);
    asking.close();
  });

  test('closes connections whose headers do not arrive, or arrive byte by byte', async () => {
    const [silent, slow] = [await open(url), await open(url)];
    slow.socket.write('GET /runs/r/deltas HTTP/1.1\r\nHost: local');
    const dripping = setInterval(() => slow.socket.write('x'), 20);
    const answers = await Promise.all([silent.all, slow.all]);
    clearInterval(dripping);
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  });

  test.each([
    ['an endless header', `${HEAD}X: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
    ['an endless path', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`, 431],
    ['text that is not HTTP', 'hello\r\n\r\n', 400],
    ['a body', `${HEAD}Content-Length: 5\r\n\r\nhello`, 400],
    ['a chunked body', `${HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    ['an empty path', 'GET // HTTP/1.1\r\nHost: localhost\r\n\r\n', 400],
    ['a proxy request', 'GET http://x/runs/r/deltas HTTP/1.1\r\nHost: localhost\r\n\r\n', 400],
    ['another method', 'POST /runs/r/deltas HTTP/1.1\r\nHost: localhost\r\n\r\n', 405],
    ['no host', 'GET /runs/r/deltas HTTP/1.0\r\n\r\n', 403],
  ])('refuses %s', async (_, bytes, code) => {
    expect(await raw(url, bytes)).toMatch(new RegExp(`^HTTP/1\\.1 ${code} `));
  });

  test('closes a tunnel, and treats an upgrade as a plain request', async () => {
    expect(await raw(url, 'CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n')).toBe('');
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    const { socket, all } = await open(url);
    socket.write(`${HEAD}${upgrade}`);
    await once(socket, 'data');
    socket.destroy();
    expect(await all).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  test('answers one request per connection: a second one ends a stream', async () => {
    const refused = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const answers = (await raw(url, refused.repeat(500))).match(/HTTP\/1\.1 \d+/g);
    expect(answers).toEqual(['HTTP/1.1 404']);
    const piped = await raw(url, `${HEAD}\r\n`.repeat(500));
    expect(piped.match(/HTTP\/1\.1 200/g)?.length ?? 0).toBeLessThanOrEqual(1);
  });

  test.each([
    ['/runs/%ZZ/deltas', 'id: expected percent-encoded UTF-8'],
    ['/runs/%FF/deltas', 'id: expected percent-encoded UTF-8'],
    ['/runs/r/deltas?after=%ZZ', 'query: expected percent-encoded UTF-8'],
    ['/runs/r/deltas?from=1', 'query: expected after=POSITION, got "from"'],
    ['/runs/r/deltas?after=a&after=b', 'after: expected one position'],
  ])('answers 400 to %s, with the reason', async (path, why) => {
    const [code, text] = await status(`${url}${path}`);
    expect([code, text]).toEqual([400, expect.stringContaining(why)]);
  });

  test('disconnects a reader that reads nothing, and gives its slot to another', async () => {
    const { url: other, hub } = await serve({ streams: 1, streamsPerClient: 1, readTimeout: 100 });
    const writer = hub.begin('r', attempt);
    const { socket } = await open(other);
    socket.pause();
    socket.write(`${HEAD}\r\n`);
    const code = async (): Promise<number> => {
      const next = await read(other);
      next.close();
      return next.status;
    };
    while ((await code()) !== 503);
    // This exceeds the kernel's buffers for a connection. A hub keeps only the newest part of a
    // reply.
    while ((await code()) !== 200) writer.push({ kind: 'text', text: 'x'.repeat(512 * 1024) });
    expect(socket.bytesRead).toBeLessThan(64 * 1024 * 1024);
  });

  test('has limits that fit the process, and rejects limits that are not numbers', () => {
    expect(defaultLimits(2_048)).toMatchObject({
      streams: 512,
      streamsPerClient: 256,
      waiting: 256,
    });
    expect(defaultLimits(256)).toMatchObject({ streams: 64, streamsPerClient: 32, waiting: 32 });
    expect(defaultLimits(Infinity)).toMatchObject({ streams: 512, waiting: 256 });
    expect(() => resolveLiveOptions({ limits: { streams: 0 } }, {})).toThrow(LiveOptionsError);
    const limitsOf = (limits: object) => resolveLiveOptions({ limits }, {}).limits;
    expect(limitsOf({ headersTimeout: '2 seconds', waiting: 3 })).toEqual({
      headersMs: 2_000,
      waiting: 3,
    });
    expect(() => limitsOf({ openTimeout: 'soon' })).toThrow(
      'live.limits.openTimeout: expected a whole number of ms or words such as "5 seconds", got "soon"',
    );
    expect(() => limitsOf({ headersMs: 5 })).toThrow(
      'live.limits: "headersMs" is not an option; did you mean headersTimeout?',
    );
  });
});

describe('a run token', () => {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  test('reads only that run; any other run looks like a missing one', async () => {
    const { url } = await serve({}, SECRET);
    const token = runToken({ run: 'run/of ü', token: SECRET });
    const mine = await request(
      `${url}/runs/${encodeURIComponent('run/of ü')}/deltas`,
      bearer(token),
    );
    expect(mine.statusCode).toBe(200);
    mine.destroy();
    const [code, text] = await status(`${url}/runs/other/deltas`, bearer(token));
    expect([code, text]).toEqual([404, expect.stringContaining('there is no run "other"')]);
    expect((await status(`${url}/runs/r/deltas?after=${token}`))[0]).toBe(401);
    expect(token).not.toContain(SECRET);
  });

  test('ends a stream when it expires', async () => {
    const { url } = await serve({}, SECRET);
    const token = runToken({ run: 'r', token: SECRET, expiresIn: 1_500 });
    const response = await request(`${url}/runs/r/deltas`, bearer(token));
    response.on('error', () => undefined).resume();
    await new Promise((resolve) => response.once('close', resolve));
    expect(verifyToken(token, SECRET)).toBeNull();
    expect((await status(`${url}/runs/r/deltas`, bearer(token)))[0]).toBe(401);
  });

  test('is invalid if any part of it is changed, and cannot be created with a short secret', () => {
    const token = runToken({ run: 'a', token: SECRET });
    expect(verifyToken(token, SECRET)).toMatchObject({ type: 'run', id: 'a' });
    const [kind = '', id = '', expires = '', seal = ''] = token.split('.');
    const other = Buffer.from('b').toString('base64url');
    for (const forged of [
      [kind, other, expires, seal],
      [kind, id, String(Number(expires) + 1), seal],
      [kind, id, expires, `${seal.slice(0, -2)}AA`],
      [kind, id, expires, ''],
      [kind, id, expires],
      [kind, id, expires, seal, ''],
      ['perdure-run-2', id, expires, seal],
    ]) {
      expect(verifyToken(forged.join('.'), SECRET)).toBeNull();
    }
    expect(verifyToken(token, 't'.repeat(32))).toBeNull();
    expect(verifyToken(token, SECRET, Date.now() + 2 * 60 * 60_000)).toBeNull();
    expect(() => runToken({ run: 'a', token: 'short' })).toThrow('at least 32 characters; got 5');
    expect(() => runToken({ run: '', token: SECRET })).toThrow('run: expected the id of a run');
    expect(() => runToken({ run: 'a', token: SECRET, expiresIn: 1e12 })).toThrow('7 days');
    const old = { run: 'a', token: SECRET, expiresInMs: 1_000 };
    expect(() => runToken(old)).toThrow('"expiresInMs" is not an option; did you mean expiresIn?');
  });
});
