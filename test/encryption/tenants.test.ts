import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { openClient } from '../../src/client/create-client.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { defineConfig } from '../../src/config.js';
import { type EncryptionOptions, keyringOf } from '../../src/encryption/keyring.js';
import { createServer } from '../../src/http.js';
import { recordRun } from '../../src/recordings/record-run.js';
import { readRecording, writeRecording } from '../../src/recordings/recording-files.js';
import { type TestServer, startTestServer } from '../../src/server/test-server.js';
import { payloadProto } from '../../src/temporal/sdk-internals.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { type RunningWorker, createWorker } from '../../src/worker/create-worker.js';
import { sourceBundle } from '../support/bundle.js';
import { sealedIn } from '../support/sealed-storage.js';

const key = (): string => randomBytes(32).toString('base64');
const [shared, ofA, ofB, newB] = [key(), key(), key(), key()];
const tenants = { a: 'kA', b: 'kB' };
const ALL: EncryptionOptions = { keys: { shared, kA: ofA, kB: ofB }, current: 'shared', tenants };
/** Only the key of one tenant, as a client that works for this tenant alone has it. */
const ONLY_A: EncryptionOptions = { keys: { kA: ofA }, current: 'kA', tenants: { a: 'kA' } };
/** After the key of `b` was deleted. */
const WITHOUT_B: EncryptionOptions = { keys: { shared, kA: ofA }, current: 'shared', tenants };
const ROTATED: EncryptionOptions = {
  keys: { shared, kA: ofA, kB2: newB, kB: ofB },
  current: 'shared',
  tenants: { a: 'kA', b: 'kB2' },
};

/** Where the words of a tenant are planted, each under a word of its own. */
const PLACES = [
  'message',
  'context',
  'attachment',
  'artifact',
  'tag',
  'sent',
  'note',
  'by',
  'arguments',
  'result',
  'large',
  'failure',
  'childinput',
  'childresult',
  'schedule',
] as const;
type Place = (typeof PLACES)[number];
const canary = (tenant: string, place: Place): string => `cnry-${tenant}-${place}-9fK3`;

const of = z.object({ tenant: z.string() });
const tool = (
  name: string,
  place: Place,
  options: { readonly approval?: 'always'; readonly size?: number; readonly fails?: true } = {},
) =>
  defineTool({
    name,
    description: name,
    input: of,
    effect: options.approval === undefined ? 'read' : 'keyed',
    ...(options.approval && { approval: options.approval }),
    execute({ tenant: given }) {
      const [, tenant = ''] = given.split('-');
      if (options.fails) throw new Error(canary(tenant, place));
      return `${canary(tenant, place)} ${'z'.repeat(options.size ?? 0)}`;
    },
  });
const model = {
  async call({ messages }: { readonly messages: readonly { readonly role: string }[] }) {
    const last = messages.at(-1);
    if (last?.role !== 'user') return replyText('done');
    const text = JSON.stringify(last);
    const [, name = '', tenant = ''] = /do (\w+) for (\w+)/.exec(text) ?? [];
    if (name === '') return replyText('hello');
    if (name === 'helper')
      return replyCall('helper', {
        message: `do peek for ${tenant} ${canary(tenant, 'childinput')}`,
      });
    return replyCall(name, { tenant: canary(tenant, 'arguments') });
  },
};
const helper = defineAgent({
  name: 'helper',
  description: 'Helps.',
  instructions: 'Help.',
  model: 'm',
  tools: [tool('peek', 'childresult', { size: 300_000 })],
});
const clerk = defineAgent({
  name: 'clerk',
  instructions: 'Help.',
  model: 'm',
  tools: [
    tool('pay', 'result', { approval: 'always' }),
    tool('look', 'result'),
    tool('load', 'large', { size: 300_000 }),
    tool('fail', 'failure', { fails: true }),
  ],
  agents: [helper],
});

let server: TestServer;
let worker: RunningWorker;
let raw: Client;
const clients: PerdureClient[] = [];
const runs: Record<string, string> = {};
beforeAll(async () => {
  server = await startTestServer();
  worker = await work(ALL);
  raw = new Client({ connection: await Connection.connect({ address: server.address }) });
  for (const tenant of ['a', 'b']) runs[tenant] = await plant(tenant);
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.disconnect();
});
afterAll(async () => {
  await worker?.shutdown();
  await raw?.connection.close();
  await server?.close();
});

async function work(encryption: EncryptionOptions): Promise<RunningWorker> {
  return await createWorker({
    config: defineConfig({ agents: [clerk, helper], models: { m: model }, encryption }),
    address: server.address,
    home: server.home,
    env: {},
    workflowBundle: await sourceBundle(),
    shutdownGrace: 200,
    segment: { steps: 3, bytes: 2_000_000 },
  });
}

async function open(encryption: EncryptionOptions, by?: string): Promise<PerdureClient> {
  const place = { address: server.address, home: server.home, env: {} };
  const client = await openClient({ ...place, encryption, ...(by !== undefined && { by }) });
  clients.push(client);
  return client;
}

const once = async (holds: () => Promise<boolean>) =>
  await vi.waitUntil(holds, { timeout: 30_000, interval: 50 });

/** Starts a run of a tenant with a canary in each place, and returns its id. */
async function plant(tenant: string): Promise<string> {
  const client = await open(ALL, canary(tenant, 'by'));
  const bytes = Buffer.from(canary(tenant, 'attachment'));
  const attachment = await client.attach(bytes, { mediaType: 'text/plain', tenant });
  const { id } = await client.start('clerk', {
    tenant,
    open: true,
    message: `do pay for ${tenant} ${canary(tenant, 'message')}`,
    context: { who: canary(tenant, 'context') },
    tags: [canary(tenant, 'tag')],
    attachments: [attachment],
    artifacts: { orders: canary(tenant, 'artifact') },
  });
  await once(async () => (await client.status(id)).pending.length === 1);
  const [request] = (await client.status(id)).pending;
  await client.resolve(id, {
    request: request?.id ?? '',
    digest: request?.digest ?? '',
    as: 'approve',
    note: canary(tenant, 'note'),
  });
  await client.result(id, { turn: 1 });
  for (const [at, word] of ['look', 'load', 'fail', 'helper'].entries()) {
    await client.send(id, `do ${word} for ${tenant} ${canary(tenant, 'sent')}`);
    expect(await client.result(id, { turn: at + 2 })).toMatchObject({ answer: 'done' });
  }
  await client.schedule.create({
    id: `${tenant}/nightly`,
    agent: 'clerk',
    tenant,
    message: canary(tenant, 'schedule'),
    every: '30 days',
  });
  await client.schedule.trigger(`${tenant}/nightly`);
  await once(async () => (await client.schedule.describe(`${tenant}/nightly`)).recent.length === 1);
  const [firing] = (await client.schedule.describe(`${tenant}/nightly`)).recent;
  expect(await client.result(firing?.id ?? '')).toMatchObject({ answer: 'hello' });
  return id;
}

const storedIn = async () => await sealedIn(raw, server.home);

/** Returns the canaries of a tenant in what these keys can decrypt. */
async function readableWith(options: EncryptionOptions, tenant: string): Promise<readonly Place[]> {
  const keyring = keyringOf(options);
  const texts: string[] = [];
  for (const { sealed } of await storedIn()) {
    if (!Object.hasOwn(options.keys ?? {}, sealed.key)) continue;
    const plain = keyring.open(sealed.purpose, sealed.key, sealed.bytes);
    const data = sealed.purpose === 'payload' ? (payloadProto().decode(plain).data ?? []) : plain;
    const text = Buffer.from(data).toString('latin1');
    // The bytes of an attachment are base64.
    texts.push(text, Buffer.from(text.split('\n').at(-1) ?? '', 'base64').toString('latin1'));
  }
  return PLACES.filter((place) => texts.some((text) => text.includes(canary(tenant, place))));
}

test('without the key of a tenant, nothing that the tenant said is readable with all other keys', async () => {
  // With it, all is found, so the next line can fail.
  expect(await readableWith(ALL, 'b')).toEqual(PLACES);
  expect(await readableWith(WITHOUT_B, 'b')).toEqual([]);
  expect(await readableWith(WITHOUT_B, 'a')).toEqual(PLACES);
});

test('all that runs, called agents, and schedules of a tenant have stored is encrypted with its key', async () => {
  const stored = await storedIn();
  for (const [tenant, own] of Object.entries(tenants)) {
    expect(runs[tenant]).toMatch(new RegExp(`^${tenant}/clerk-`));
    const places = stored.filter(({ at }) => at.startsWith(`${tenant}/`));
    expect(new Set(places.map(({ at }) => at.replace(/-.*|T.*/, '')))).toEqual(
      new Set([`${tenant}/clerk`, `${tenant}/nightly`]),
    );
    expect(places.some(({ at }) => at.includes('/call_'))).toBe(true);
    expect(new Set(places.map(({ sealed }) => sealed.key))).toEqual(new Set([own]));
  }
  const blobs = stored.filter(({ at }) => at === 'blobs');
  expect(new Set(blobs.map(({ sealed }) => sealed.key))).toEqual(new Set(['kA', 'kB']));
});

test('a client with the key of one tenant reads that tenant, and names the key of the other', async () => {
  const { a = '', b = '' } = runs;
  const client = await open(ONLY_A);
  expect((await client.transcript(a)).messages.length).toBeGreaterThan(8);
  for (const method of ['status', 'transcript'] as const) {
    const reading = client[method](b);
    await expect(reading).rejects.toMatchObject({ code: 'unreadable' });
    await expect(reading).rejects.toThrow(
      /encrypted with key "kB", and this process has only "kA"/,
    );
  }
  const { rows } = await client.list();
  expect(rows.find(({ id }) => id === a)).toMatchObject({ tags: [canary('a', 'tag')] });
  expect(rows.find(({ id }) => id === b)?.unreadable).toContain('key "kB"');
  await expect(client.schedule.describe('b/nightly')).rejects.toThrow(/key "(kB|shared)"/);
  // It writes nothing with the wrong key, either.
  await expect(client.send(b, 'do look for b')).rejects.toThrow(
    `"${b}" belongs to no tenant whose encryption key is here`,
  );
  await expect(client.start('clerk', 'hello')).rejects.toThrow(
    'tenant: expected one of "a", because only their encryption keys are here, got none',
  );
  await client.send(a, 'do look for a');
  expect(await client.result(a, { turn: 6 })).toMatchObject({ answer: 'done' });
});

test('after the key of a tenant was deleted, its runs are unreadable, and none can be started', async () => {
  const { b = '' } = runs;
  const client = await open(WITHOUT_B);
  const missing = /encrypted with key "kB", and this process has only "shared", "kA"/;
  await expect(client.transcript(b)).rejects.toThrow(missing);
  await expect(client.start('clerk', 'hello', { tenant: 'b' })).rejects.toThrow(missing);
  await expect(client.attach(Buffer.from('x'), { mediaType: 'text/plain', tenant: 'b' }))
    .rejects //
    .toThrow(missing);
});

test.each([
  [{ tenant: 'a', id: 'desk-1' }, /id: expected one that begins with "a\/", because tenant "a"/],
  [{ tenant: 'b', id: 'a/desk' }, /id: expected one that begins with "b\/".*got "a\/desk/],
  [{ id: 'a/desk' }, /tenant: expected "a", because an id that begins with "a\/" leads.*got none/],
  [{ tenant: 'c', id: 'a/desk' }, /tenant: expected "a".*got "c"/],
])('a start whose id and tenant lead to different keys is refused: %j', async (given, message) => {
  const client = await open(ALL);
  await expect(client.start('clerk', 'hello', given)).rejects.toThrow(message);
  const { id, ...settings } = given;
  await expect(
    client.send(id, 'hello', { start: { agent: 'clerk', ...settings } }),
  ).rejects.toThrow(message);
  const firing = { agent: 'clerk', message: 'hello', every: '30 days' } as const;
  await expect(client.schedule.create({ ...firing, ...given })).rejects.toThrow(message);
  const batch = client.batch('clerk', ['hello'], { ...settings, id });
  expect(await batch.all()).toMatchObject([
    { outcome: { reason: 'input', error: expect.stringMatching(message) as string } },
  ]);
});

test('a schedule that sends to a run of a tenant, and a fork, are of the tenant', async () => {
  const { a = '' } = runs;
  const client = await open(ALL);
  const sending = { to: a, message: 'hello', every: '30 days' } as const;
  await expect(client.schedule.create({ ...sending, id: 'nightly' })).rejects.toThrow(
    'id: expected one that begins with "a/"',
  );
  const fork = await client.fork(a, { message: 'hello' });
  expect(fork.id).toMatch(/^a\/clerk-/);
  expect(await client.result(fork)).toMatchObject({ answer: 'hello' });
});

test('at every door, a principal of a tenant starts runs whose ids lead to the key of the tenant', async () => {
  const client = await open(ALL);
  const config = defineConfig({
    agents: [clerk, helper],
    models: { m: model },
    serve: { principals: { acme: { rights: { '*': 'all' }, tenant: 'a' } } },
  });
  const secret = 'acme-acme-acme-acme';
  const env = { PERDURE_SERVE_KEYS: `acme:${secret}` };
  await using http = await createServer({ client, config, env });
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await http.fetch(
      new Request(`http://127.0.0.1${path}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${secret}`,
          ...headers,
        },
        body: JSON.stringify(body),
      }),
    );
    return { status: response.status, text: await response.text() };
  };
  const before = new Set((await client.list()).rows.map(({ id }) => id));
  const data = Buffer.from('a letter').toString('base64');
  const message = { agent: 'clerk', message: 'hello' };
  const attachments = [{ mediaType: 'text/plain', data }];
  const parts = [{ type: 'text', text: 'hello' }];
  const said = [{ id: 'm', role: 'user', content: 'hello' }];
  const answers = [
    await post('/v1/runs', { ...message, attachments }),
    await post('/v1/runs', message, { 'idempotency-key': 'one' }),
    await post(`/v1/runs/${encodeURIComponent(runs['a'] ?? '')}/forks`, { message: 'hello' }),
    await post('/v1/ui/clerk', { id: 'c', messages: [{ id: 'm', role: 'user', parts }] }),
    await post('/v1/ag-ui/clerk', {
      threadId: 't',
      runId: 'r',
      state: {},
      messages: said,
      tools: [],
      context: [],
      forwardedProps: {},
    }),
    await post('/v1/chat/completions', {
      model: 'clerk',
      messages: [{ role: 'user', content: 'hello' }],
    }),
    await post('/v1/responses', { model: 'clerk', input: 'hello' }),
    await post('/v1/responses', { model: 'clerk', input: 'hello', conversation: 'conv_one' }),
    await post('/v1/responses', { model: 'clerk', input: 'more', conversation: 'conv_one' }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, ...Array(6).fill(200)]);
  // The server lists a run a moment after its start.
  const kinds = async () =>
    (await client.list()).rows
      .filter(({ id }) => !before.has(id))
      .map(({ id }) => /^a\/([a-z]+)-/.exec(id)?.[1] ?? id)
      .toSorted();
  await expect
    .poll(kinds)
    .toEqual(['ai', 'ai', 'chat', 'clerk', 'clerk', 'conversation', 'http', 'thread']);
  const refused = await post('/v1/runs', { ...message, id: 'mine' });
  expect(refused).toMatchObject({
    status: 400,
    text: expect.stringContaining('\\"a/\\"') as string,
  });
  const stored = await storedIn();
  expect(
    new Set(stored.filter(({ at }) => at === 'blobs').map(({ sealed }) => sealed.key)),
  ).toEqual(new Set(['kA', 'kB']));
});

test('a recording of a run has the key of its tenant', async () => {
  const { a = '' } = runs;
  const file = join(server.home, 'case.json');
  await writeRecording(file, await recordRun(await open(ALL), a));
  expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ key: 'kA' });
  await expect(
    readRecording(file, { encryption: { keys: { shared }, current: 'shared' } }),
  ).rejects.toThrow(/encrypted with key "kA", and this process has only "shared"/);
  expect((await readRecording(file, { encryption: ONLY_A })).runs[0]?.id).toBe(a);
});

test('a key of a tenant can be changed; what is older needs the older key', async () => {
  const { b = '' } = runs;
  await worker.shutdown();
  worker = await work(ROTATED);
  const client = await open(ROTATED);
  await client.send(b, 'do load for b');
  expect(await client.result(b, { turn: 6 })).toMatchObject({ answer: 'done' });
  const keys = (await storedIn())
    .filter(({ at }) => at.startsWith('b/'))
    .map(({ sealed }) => sealed.key);
  expect(new Set(keys)).toEqual(new Set(['kB', 'kB2']));
  const newer = await open({ keys: { kB2: newB }, current: 'kB2', tenants: { b: 'kB2' } });
  await expect(newer.transcript(b)).rejects.toThrow(
    /encrypted with key "kB", and this process has only "kB2"/,
  );
});
