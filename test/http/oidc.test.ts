import { exportJWK, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { HttpError } from '../../src/http/errors.js';
import { type Authenticate, authenticator } from '../../src/http/principals.js';
import { type HttpServer, httpServer } from '../support/http-server.js';
import { keyOf } from '../support/http-desk.js';

/** Real tokens, and an issuer whose keys change and which fails. */
const BEGIN = Date.UTC(2030, 0, 1);
const MINUTE = 60_000;

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;

let issuer: HttpServer;
let isUp: boolean;
let published: Record<string, unknown>[];
let first: Pair;
let authenticate: Authenticate;

const publish = async ({ publicKey }: Pair, kid: string): Promise<void> => {
  published.push({ ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' });
};

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: BEGIN });
  [isUp, published] = [true, []];
  first = await generateKeyPair('ES256', { extractable: true });
  await publish(first, 'first');
  issuer = await httpServer((request, response) => {
    response.statusCode = isUp ? 200 : 500;
    const about = { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` };
    response.end(JSON.stringify(request.url === '/jwks' ? { keys: published } : about));
  });
  authenticate = authenticator(
    {
      oidc: { issuer: issuer.url, audience: 'perdure' },
      principals: { ann: { rights: { '*': 'all' } } },
    },
    { env: { PERDURE_SERVE_KEYS: `ann:${keyOf('ann')}` }, local: 'local' },
  );
});
afterEach(async () => {
  vi.useRealTimers();
  await issuer.close();
});

interface Given {
  readonly claims?: Record<string, unknown>;
  readonly kid?: string;
  readonly alg?: string;
  readonly key?: Parameters<SignJWT['sign']>[0];
}

async function token({ claims, kid = 'first', alg = 'ES256', key }: Given = {}): Promise<string> {
  const now = BEGIN / 1_000;
  const all = { iss: issuer.url, aud: 'perdure', sub: 'carl', exp: now + 86_400, ...claims };
  const given = Object.entries(all).filter(([, value]) => value !== null);
  return await new SignJWT(Object.fromEntries(given))
    .setProtectedHeader({ alg, kid })
    .sign(key ?? first.privateKey);
}

/** Returns the name of the principal, or the status of the refusal. */
const ask = async (jwt: string): Promise<string | number> =>
  await authenticate(`Bearer ${jwt}`).then(
    ({ name }) => name,
    (error: HttpError) => error.status,
  );

describe('a token', () => {
  test('counts if its issuer has signed it, for this server and this time', async () => {
    const now = BEGIN / 1_000;
    expect(await ask(await token())).toBe('carl');
    const wrong = [
      { exp: now - 1 },
      { exp: null },
      { nbf: now + 600 },
      { aud: 'another' },
      { aud: null },
      { iss: 'https://evil.example' },
      { iss: `${issuer.url}/` },
      { iss: null },
      { sub: null },
      { sub: '' },
      { sub: ['carl'] },
    ];
    const answers = wrong.map(async (claims) => await ask(await token({ claims })));
    expect(await Promise.all(answers)).toEqual(wrong.map(() => 401));
  });

  test('does not count without a signature, by the public key, or by a key of its own', async () => {
    const part = (value: object): string =>
      Buffer.from(JSON.stringify(value)).toString('base64url');
    const [, body] = (await token()).split('.');
    const other = await generateKeyPair('ES256');
    const jwk = await exportJWK(other.publicKey);
    const encode = new TextEncoder();
    const shared = { alg: 'HS256', claims: {} };
    const forged = [
      `${part({ alg: 'none' })}.${body}.`,
      `${part({ alg: 'none', kid: 'first' })}.${body}.AAAA`,
      `${part({ alg: 'NONE', kid: 'first' })}.${body}.AAAA`,
      await token({ ...shared, key: encode.encode(await exportSPKI(first.publicKey)) }),
      await token({ ...shared, key: encode.encode(JSON.stringify(published[0])) }),
      await token({ key: other.privateKey }),
      await token({ key: other.privateKey, kid: 'unknown' }),
      await new SignJWT({ sub: 'carl', exp: BEGIN / 1_000 + 60 })
        .setProtectedHeader({ alg: 'ES256', jwk, jku: 'http://127.0.0.1:1/jwks' })
        .setIssuer(issuer.url)
        .setAudience('perdure')
        .sign(other.privateKey),
    ];
    expect(await Promise.all(forged.map(ask))).toEqual(forged.map(() => 401));
    // However many tokens name keys that do not exist, the issuer is left in peace.
    expect(issuer.requests).toBe(2);
  });

  test('cannot have the name, and so the rights and the runs, of a key', async () => {
    const named = await token({ claims: { sub: 'ann' } });
    await expect(authenticate(`Bearer ${named}`)).rejects.toThrow('the name of a key');
    expect((await authenticate(`Bearer ${keyOf('ann')}`)).may('control', { agent: 'desk' })).toBe(
      true,
    );
  });
});

describe('the keys of an issuer', () => {
  test('are read again for a new one, and in time without one that was withdrawn', async () => {
    expect(await ask(await token())).toBe('carl');
    const second = await generateKeyPair('ES256', { extractable: true });
    const next = await token({ kid: 'second', key: second.privateKey });
    await publish(second, 'second');
    vi.setSystemTime(BEGIN + MINUTE);
    expect(await ask(next)).toBe('carl');
    published.shift();
    vi.setSystemTime(BEGIN + 12 * MINUTE);
    expect([await ask(next), await ask(await token())]).toEqual(['carl', 401]);
  });

  test('are used for an hour if the issuer does not answer, which is asked again twice a minute', async () => {
    isUp = false;
    expect(await ask(await token())).toBe(503);
    isUp = true;
    expect(await ask(await token())).toBe('carl');
    const before = issuer.requests;
    isUp = false;
    vi.setSystemTime(BEGIN + 20 * MINUTE);
    for (let n = 0; n < 5; n += 1) expect(await ask(await token())).toBe('carl');
    expect(await ask(await token({ kid: 'unknown' }))).toBe(401);
    expect(issuer.requests - before).toBe(1);
    vi.setSystemTime(BEGIN + 21 * MINUTE);
    expect(await ask(await token())).toBe('carl');
    expect(issuer.requests - before).toBe(2);
    vi.setSystemTime(BEGIN + 61 * MINUTE);
    expect(await ask(await token())).toBe(503);
    isUp = true;
    expect(await ask(await token())).toBe('carl');
  });
});
