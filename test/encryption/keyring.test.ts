import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { expect, test } from 'vitest';
import { InputError } from '../../src/core/errors.js';
import { calledId } from '../../src/core/transcript/call-result.js';
import { encryptionCodec } from '../../src/encryption/payload-codec.js';
import { openClient } from '../../src/client/create-client.js';
import { HASH_IDS_VARIABLE } from '../../src/encryption/hashed-ids.js';
import {
  type EncryptionOptions,
  KEYS_VARIABLE,
  keyringFrom,
} from '../../src/encryption/keyring.js';
import { isHashedId } from '../../src/temporal/stored-ids.js';
import { sealedBlobs } from '../../src/encryption/sealed-stores.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import { memoryBlobs } from '../support/activity.js';

const key = (): string => randomBytes(32).toString('base64');
const [older, newer] = [key(), key()];
const text = (value: string) => ({
  metadata: { encoding: Buffer.from('json/plain') },
  data: Buffer.from(JSON.stringify(value)),
});

test('a payload of an earlier key is read after a rotation, and written with the new key', async () => {
  const before = encryptionCodec({ keys: { k1: older }, current: 'k1' });
  const after = encryptionCodec({ keys: { k2: newer, k1: older }, current: 'k2' });
  const [sealed] = await before.encode([text('hello')]);
  const [read] = await after.decode([sealed ?? {}]);
  expect(Buffer.from(read?.data ?? []).toString()).toBe('"hello"');
  const [written] = await after.encode([text('hello')]);
  expect(String(written?.metadata?.['encryption-key-id'])).toBe('k2');
  await expect(before.decode([written ?? {}])).rejects.toThrow(
    /encrypted with key "k2", and this process has only "k1"; add the key to PERDURE_ENCRYPTION_KEYS/,
  );
});

test('a payload in clear, as in runs of before, is read as it is', async () => {
  const codec = encryptionCodec({ keys: { k1: older }, current: 'k1' });
  expect(await codec.decode([text('hello')])).toEqual([text('hello')]);
});

test('a payload that was changed is refused, also one whose key id was', async () => {
  const codec = encryptionCodec({ keys: { k1: older, k2: newer }, current: 'k1' });
  const [sealed = {}] = await codec.encode([text('hello')]);
  const data = Buffer.from(sealed.data ?? []);
  data[data.length - 1] = (data.at(-1) ?? 0) ^ 1;
  await expect(codec.decode([{ ...sealed, data }])).rejects.toThrow(/key "k1": it was changed/);
  await expect(codec.decode([{ ...sealed, data: data.subarray(0, 9) }])).rejects.toThrow(
    /key "k1": it was changed/,
  );
  const metadata = { ...sealed.metadata, 'encryption-key-id': Buffer.from('k2') };
  await expect(codec.decode([{ ...sealed, metadata }])).rejects.toThrow(/key "k2": it was changed/);
});

test('the same payload is never encrypted to the same bytes, and the same blob always is', async () => {
  const codec = encryptionCodec({ keys: { k1: older }, current: 'k1' });
  const [one, other] = await codec.encode([text('hello'), text('hello')]);
  expect(one?.data).not.toEqual(other?.data);
  const store = memoryBlobs();
  const blobs = sealedBlobs(store, keyringFrom({ keys: { k1: older }, current: 'k1' }, {}));
  const ref = await blobs.put('hello');
  expect(await blobs.put('hello')).toEqual(ref);
  expect(ref.bytes).toBe(5);
  expect(await blobs.get(ref)).toBe('hello');
  expect(await store.get(ref)).not.toContain('hello');
});

test('a blob is not read without its key, and no text can pass for an encrypted one', async () => {
  const store = memoryBlobs();
  const ref = await sealedBlobs(store, keyringFrom({ keys: { k1: older }, current: 'k1' }, {})).put(
    'hello',
  );
  const without = sealedBlobs(store, null);
  await expect(without.get(ref)).rejects.toThrow(
    /encrypted with key "k1", and this process has no key/,
  );
  for (const foreign of ['perdure encrypted k1\nAAAA', 'perdure clear\nhello', 'hello']) {
    expect(await without.get(await without.put(foreign))).toBe(foreign);
  }
});

const agent = defineAgent({ name: 'clerk', instructions: 'x', model: 'm' });

test.each([
  ['nothing', null, /encryption: expected \{ keys/],
  ['a text', 'k1:abc', /encryption: expected \{ keys/],
  ['no keys', { current: 'k1' }, /encryption: expected \{ keys/],
  [
    'a short key',
    { keys: { k1: 'c2hvcnQ=' }, current: 'k1' },
    /key "k1": expected base64 of 32 bytes/,
  ],
  ['a key in hex', { keys: { k1: 'ab'.repeat(32) }, current: 'k1' }, /got 64 characters/],
  ['a number', { keys: { k1: 7 }, current: 'k1' }, /got number/],
  ['a bad id', { keys: { 'k 1': older }, current: 'k 1' }, /expected ids of 1 to 64 letters/],
  [
    'another current key',
    { keys: { k1: older }, current: 'k2' },
    /one of the keys \("k1"\), got "k2"/,
  ],
  ['no current key', { keys: { k1: older } }, /current: expected the id of one of the keys/],
  [
    'another key for ids',
    { keys: { k1: older }, current: 'k1', hashIds: 'k2' },
    /hashIds: expected the id of one of the keys \("k1"\), got "k2"; .* keep it among the keys/,
  ],
  [
    'hashed ids and keys of tenants',
    { keys: { k1: older, a: newer }, current: 'k1', hashIds: 'k1', tenants: { acme: 'a' } },
    /expected either hashIds or tenants, got both/,
  ],
  [
    'a table that is a text',
    { tenants: 'a' },
    /tenants: expected the ids of keys by tenants.*got "a"/,
  ],
  [
    'a tenant as a path',
    { tenants: { 'a/b': 'k1' } },
    /tenants: expected names of 1 to 64.*"a\/b"/,
  ],
  ['a tenant without a key', { tenants: { a: 7 } }, /tenants: a: expected the id of a key, got 7/],
])('a configuration with %s is refused, without the key', (_, encryption, message) => {
  const define = (): unknown => defineConfig({ agents: [agent], encryption } as never);
  expect(define).toThrow(InputError);
  expect(define).toThrow(message);
  expect(define).not.toThrow(older);
});

test.each([
  [older, /expected ID:KEY, .*got a key without an id; write .*k1:KEY/],
  [`:${older}`, /expected ids of 1 to 64 letters.*got ""/],
  [`k1:${older},k2:${newer},k1:${newer}`, /expected each id once, got "k1" twice/],
  ['k1:tooshort', /key "k1": expected base64 of 32 bytes \(44 characters\), got 8 characters/],
])('a variable with %s is refused', (value, message) => {
  const read = (): unknown => keyringFrom(undefined, { [KEYS_VARIABLE]: value });
  expect(read).toThrow(message);
  expect(read).toThrow(KEYS_VARIABLE);
});

test('the first key of the variable encrypts; an empty variable has no keys', () => {
  const both = { [KEYS_VARIABLE]: ` k2:${newer}, k1:${older},` };
  expect(keyringFrom(undefined, both)?.current).toBe('k2');
  expect(keyringFrom(undefined, { [KEYS_VARIABLE]: ' ' })).toBeNull();
  expect(keyringFrom({ keys: { k1: older }, current: 'k1' }, both)?.current).toBe('k1');
});

test('the hash of an id depends on its kind and on the named key only', () => {
  const hash = (options: EncryptionOptions) =>
    keyringFrom(options, {})?.ids?.hash('run', 'order-1');
  const one = hash({ keys: { k1: older }, current: 'k1', hashIds: 'k1' });
  expect(one).toMatch(/^h-[a-z2-7]{32}$/);
  expect(hash({ keys: { k2: newer, k1: older }, current: 'k2', hashIds: 'k1' })).toBe(one);
  expect(hash({ keys: { k1: older, k2: newer }, current: 'k1', hashIds: 'k2' })).not.toBe(one);
  expect(hash({ keys: { k1: older }, current: 'k1' })).toBeUndefined();
  const variables = { [KEYS_VARIABLE]: `k2:${newer},k1:${older}`, [HASH_IDS_VARIABLE]: 'k1' };
  const { ids } = keyringFrom(undefined, variables) ?? {};
  expect(ids?.hash('run', 'order-1')).toBe(one);
  expect(ids?.hash('message', 'order-1')).not.toBe(one);
  expect(() => keyringFrom(undefined, { [HASH_IDS_VARIABLE]: 'k1' })).toThrow(
    'expected keys, because ids are to be hashed',
  );
});

test('what derives from a hash is one, and nothing else is', () => {
  const hash = `h-${'a2'.repeat(16)}`;
  expect([hash, `${hash}/2.1`, `${hash}-2026-11-27T00:00:00Z`].every(isHashedId)).toBe(true);
  expect([`${hash}a`, `x${hash}`, 'h-1', 'order-1', ''].some(isHashedId)).toBe(false);
});

test('a client of the SDK that sends in clear is refused if ids are hashed', async () => {
  const encryption = { keys: { k1: older }, current: 'k1', hashIds: 'k1' };
  const client = new Client({ connection: Connection.lazy() });
  await expect(openClient({ client, encryption, env: {} })).rejects.toThrow(
    /expected a client with a payload codec, because `encryption.hashIds` is set/,
  );
  await client.connection.close();
});

const of = (workflowId: string) =>
  ({ type: 'workflow', namespace: 'default', workflowId }) as const;

test('required: what is in clear is refused, and so is a process without keys', async () => {
  const codec = encryptionCodec({ keys: { k1: older }, current: 'k1', required: true });
  await expect(codec.decode([text('hello')], of('desk-1'))).rejects.toThrow(
    'a payload of "desk-1" is in clear (json/plain), and `encryption.required` refuses it',
  );
  expect(await codec.decode(await codec.encode([text('hello')]))).toMatchObject([
    { data: text('hello').data },
  ]);
  const env = { [KEYS_VARIABLE]: `k1:${older}` };
  const keyring = keyringFrom({ required: true }, env);
  expect(keyring).toMatchObject({ current: 'k1', required: true });
  const store = memoryBlobs();
  const clear = await store.put('hello');
  await expect(sealedBlobs(store, keyring).get(clear)).rejects.toThrow(
    /blob [0-9a-f]{64} cannot be read: it is in clear, and `encryption.required` refuses it/,
  );
  expect(() => keyringFrom({ required: true }, {})).toThrow(
    'encryption: expected keys, because `required` is true, got none; set PERDURE_ENCRYPTION_KEYS',
  );
  expect(() => encryptionCodec({ required: true })).toThrow(/expected the id of one of the keys/);
});

test('the variable has keys of tenants; the first of each encrypts, and the first of none the rest', () => {
  const [one, other] = [key(), key()];
  const env = { [KEYS_VARIABLE]: `a2@acme:${one}, k1:${older}, a1@acme:${other},k2:${newer}` };
  const keyring = keyringFrom(undefined, env);
  const keys = ['acme/desk-1', 'acme/', 'desk-1', 'acme', 'acme-2/desk', undefined];
  expect(keys.map((id) => keyring?.keyFor(id))).toEqual(['a2', 'a2', 'k1', 'k1', 'k1', 'k1']);
  expect(keyring?.open('blob', 'a1', keyring.seal('blob', Buffer.from('x'), 'a1'))).toEqual(
    Buffer.from('x'),
  );
  // An older key of a tenant is its own, too, and a shared key is that of all.
  const read = (id: string, run: string): string | undefined =>
    keyring?.open('payload', id, keyring.seal('payload', Buffer.from('x'), id), run).toString();
  expect([read('a1', 'acme/desk-1'), read('k1', 'acme/desk-1')]).toEqual(['x', 'x']);
  for (const run of ['umbra/desk', 'desk-1', 'acme']) {
    expect(() => read('a1', run)).toThrow(
      `it is encrypted with key "a1" of tenant "acme", and "${run}" is not of that tenant; `,
    );
  }
  // The table may be in the configuration, and the keys in the environment.
  const both = keyringFrom({ tenants: { umbra: 'k2', acme: 'a1' } }, env);
  expect(['umbra/desk', 'acme/desk'].map((id) => both?.keyFor(id))).toEqual(['k2', 'a1']);
  expect(keyringFrom({ tenants: { acme: 'a1' } }, {})).toBeNull();
});

test('a key of a tenant never encrypts what belongs to others', () => {
  const keyring = keyringFrom(undefined, { [KEYS_VARIABLE]: `a1@acme:${older}` });
  expect(keyring?.keyFor('acme/desk-1')).toBe('a1');
  expect(() => keyring?.keyFor('desk-1')).toThrow(
    '"desk-1" belongs to no tenant whose encryption key is here; add the key that encrypts the rest',
  );
});

test('the id of a called run leads to the key of the tenant, however long it is', () => {
  const called = { name: 'call_1_1_0', key: 'f'.repeat(64) };
  const workflowId = `acme/${'x'.repeat(400)}`;
  const digest = (): string => 'digest';
  expect(calledId({ ...called, workflowId, tenant: 'acme' }, digest)).toMatch(
    /^acme\/digest\/call/,
  );
  for (const tenant of ['other', undefined]) {
    expect(calledId({ ...called, workflowId, tenant }, digest)).toMatch(/^digest\/call/);
  }
});
