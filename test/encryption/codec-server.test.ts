import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codecServer } from '../../src/http/codec-server.js';
import { encryptionCodec } from '../../src/encryption/payload-codec.js';
import { commandLine, type RunningCommand } from '../support/command.js';

const key = randomBytes(32).toString('base64');
const cli = await commandLine();
let command: RunningCommand;
let url: string;

beforeAll(async () => {
  const env = { PERDURE_ENCRYPTION_KEYS: `k1:${key}` };
  command = cli.start(['codec', '--port', '0', '--origin', 'https://ui.example'], { env });
  await command.prints('Codec server: ');
  url = /Codec server: (\S+)/.exec(command.stderr())?.[1] ?? '';
});
afterAll(async () => {
  command.child.kill('SIGTERM');
  await command.ended;
});

const encoded = async () => {
  const codec = encryptionCodec({ keys: { k1: key }, current: 'k1' });
  const plain = {
    metadata: { encoding: Buffer.from('json/plain') },
    data: Buffer.from('"aubergine"'),
  };
  const [sealed] = await codec.encode([plain]);
  const metadata = Object.fromEntries(
    Object.entries(sealed?.metadata ?? {}).map(([name, value]) => [name, base64(value)]),
  );
  return { payloads: [{ metadata, data: base64(sealed?.data ?? '') }] };
};

const send = async (to: string, given: unknown, headers: Record<string, string> = {}) =>
  await fetch(to, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof given === 'string' ? given : JSON.stringify(given),
  });

test('decodes and encodes payloads, as the UI of a browser asks for', async () => {
  const origin = 'https://ui.example';
  const decoded = await send(`${url}/decode`, await encoded(), {
    origin,
    'x-namespace': 'default',
  });
  expect(decoded.headers.get('access-control-allow-origin')).toBe(origin);
  const { payloads } = (await decoded.json()) as { payloads: { data: string }[] };
  expect(Buffer.from(payloads[0]?.data ?? '', 'base64').toString()).toBe('"aubergine"');
  const again = (await (await send(`${url}/encode`, { payloads })).json()) as { payloads: unknown };
  const { payloads: clear } = (await (await send(`${url}/decode`, again)).json()) as typeof again;
  expect(clear).toEqual(payloads);
  const preflight = await fetch(`${url}/decode`, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST' },
  });
  expect(preflight.headers.get('access-control-allow-headers')).toContain('x-namespace');
});

test('takes the token as a bearer token, too, and refuses any other', async () => {
  const token = url.split('/').at(-1) ?? '';
  const open = url.slice(0, -token.length - 1);
  const given = await encoded();
  const authorized = await send(`${open}/decode`, given, { authorization: `Bearer ${token}` });
  expect(authorized.status).toBe(200);
  for (const [to, headers] of [
    [`${open}/decode`, {}],
    [`${open}/${token.slice(1)}/decode`, {}],
    [`${url}/decode`, { authorization: 'Bearer nothing' }],
  ] as const) {
    const refused = await send(to, given, headers);
    expect(refused.status).toBe(401);
    expect(await refused.text()).not.toContain('aubergine');
  }
});

test('without the token, no byte of a body is read', async () => {
  const codec = encryptionCodec({ keys: { k1: key }, current: 'k1' });
  const handle = codecServer({ codec, token: 'right', origins: [] });
  let isRead = false;
  const body = new ReadableStream(
    {
      pull(stream) {
        isRead = true;
        stream.enqueue(Buffer.from('{}'));
        stream.close();
      },
    },
    { highWaterMark: 0 },
  );
  const request = { method: 'POST', body, duplex: 'half' as const };
  const answer = await handle(new Request('http://127.0.0.1/wrong/decode', request));
  expect(answer.status).toBe(401);
  expect(isRead).toBe(false);
});

test.each([
  ['a foreign page', { origin: 'https://evil.example' }, { payloads: [] }, 403, /--origin/],
  ['no JSON', {}, 'payloads', 400, /expected \{ "payloads"/],
  ['a number', {}, { payloads: [7] }, 400, /expected/],
  ['data that is not base64', {}, { payloads: [{ data: '§' }] }, 400, /expected/],
  [
    'another key',
    {},
    { payloads: [sealedWith('k9')] },
    400,
    /key "k9", and this process has only "k1"/,
  ],
  ['rubbish of the key', {}, { payloads: [sealedWith('k1')] }, 400, /key "k1": it was changed/],
])('refuses %s', async (_, headers, given, status, message) => {
  const refused = await send(`${url}/decode`, given, headers);
  expect(refused.status).toBe(status);
  expect(await refused.text()).toMatch(message);
});

test('needs keys, and origins without a path', async () => {
  const without = await cli.here(['codec']).ended;
  expect(without).toMatchObject({ code: 2 });
  expect(without.stderr).toContain('expected keys, got none; set PERDURE_ENCRYPTION_KEYS');
  const odd = await cli.here(['codec', '--origin', 'ui.example']).ended;
  expect(odd).toMatchObject({ code: 2 });
  expect(odd.stderr).toContain('expected an origin such as');
});

function sealedWith(id: string): object {
  const metadata = { encoding: base64('binary/encrypted'), 'encryption-key-id': base64(id) };
  return { metadata, data: base64('x'.repeat(60)) };
}

function base64(value: string | Uint8Array): string {
  return Buffer.from(value as Uint8Array).toString('base64');
}
