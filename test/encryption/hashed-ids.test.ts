import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import { openClient } from '../../src/client/create-client.js';
import { HASH_IDS_VARIABLE } from '../../src/encryption/hashed-ids.js';
import { KEYS_VARIABLE } from '../../src/encryption/keyring.js';
import { createServer } from '../../src/http.js';
import { startTestServer } from '../../src/server/test-server.js';
import { commandLine } from '../support/command.js';

/** What a caller names, each by a word that stands nowhere else. */
const NAMED = [
  'run',
  'tenant',
  'message',
  'decision',
  'schedule',
  'target',
  'sent',
  'fork',
  'batch',
  'command',
  'http',
  'conversation',
  'budget',
  'logged',
] as const;
/** Ids that reach the server in no form, or as a digest, whether ids are hashed or not. */
const OTHERS = ['chat', 'thread', 'unknown'] as const;
type Place = (typeof NAMED)[number] | (typeof OTHERS)[number];
const canary = (place: Place): string => `cnry-${place}-7Q2vT9xL`;

const CONFIG = `
import { defineAgent, defineConfig, defineTool } from 'perdure';
import { replyCall, replyText } from 'perdure/testing';
import { z } from 'zod';

const pay = defineTool({
  name: 'pay', description: 'pays', input: z.object({}), effect: 'keyed', approval: 'always',
  execute: async () => 'paid',
});
const model = {
  async call({ messages }) {
    const last = messages.at(-1);
    if (last.role !== 'user') return replyText('done');
    if (last.text === 'call') return replyCall('helper', { message: 'hello' });
    return last.text === 'pay' ? replyCall('pay', {}) : replyText('hello');
  },
};
const helper = defineAgent({ name: 'helper', description: 'helps', instructions: 'Help.', model: 'm' });
const clerk = defineAgent({ name: 'clerk', description: 'x', instructions: 'x', model: 'm', tools: [pay], agents: [helper] });
export default defineConfig({
  agents: [clerk, helper],
  models: { m: model },
  budgets: [
    { tenant: '${canary('tenant')}', per: 'day', tokens: 1_000_000 },
    { tenant: '${canary('budget')}', per: 'day', tokens: 1_000_000 },
  ],
});
`;

const keys = `k1:${randomBytes(32).toString('base64')}`;
const cli = await commandLine();
beforeAll(async () => {
  await writeFile(join(cli.folder, 'perdure.config.mjs'), CONFIG);
});

/** Names every canary on a server of its own, and returns which of them are on its disk or in a log. */
async function plant(env: Readonly<Record<string, string>>): Promise<readonly Place[]> {
  await using server = await startTestServer();
  const all = { ...server.env, ...env };
  const worker = cli.start(['worker'], { env: { ...all, PERDURE_DEBUG: '1' } });
  const client = await openClient({ env: all });
  const logged: string[] = [];
  await actAsClient(client);
  const command = [
    'run',
    'clerk',
    'hello',
    '--id',
    canary('command'),
    '--tenant',
    canary('budget'),
  ];
  const ran = await cli.start([...command, '--config', 'perdure.config.mjs'], { env: all }).ended;
  expect([ran.code, ran.stderr]).toEqual([0, expect.anything()]);
  const doors = await createServer({ client, env: all, log: (line) => void logged.push(line) });
  await actAtDoors(async (path, body) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const request = body === undefined ? {} : { ...init, body: JSON.stringify(body) };
    const response = await doors.fetch(new Request(`http://127.0.0.1${path}`, request));
    return { status: response.status, text: await response.text() };
  });
  // Nothing answers any more, which the server logs with the path.
  await client.disconnect();
  const path = `/v1/runs/${canary('logged')}/transcript`;
  const failed = await doors.fetch(new Request(`http://127.0.0.1${path}`));
  expect([failed.status >= 500, logged]).toEqual([
    true,
    [expect.stringContaining('GET /v1/runs/')],
  ]);
  worker.child.kill('SIGKILL');
  const { stderr, stdout } = await worker.ended;
  const stored = await bytesBelow(server.home);
  const everything = [stored, stderr, stdout, ...logged].join('\n');
  return [...NAMED, ...OTHERS].filter((place) => everything.includes(canary(place)));
}

async function actAsClient(client: PerdureClient): Promise<void> {
  const run = canary('run');
  await client.start('clerk', { id: run, message: 'pay', open: true, tenant: canary('tenant') });
  await expect.poll(async () => (await client.status(run)).pending).toHaveLength(1);
  const { id: request = '', digest = '' } = (await client.requests({ run })).requests[0] ?? {};
  await client.resolve(run, { request, digest, as: 'approve' }, { id: canary('decision') });
  await client.result(run, { turn: 1 });
  await client.send(run, { message: 'call', id: canary('message') });
  expect(await client.result(run, { turn: 2 })).toMatchObject({ answer: 'done' });
  const schedule = { agent: 'clerk', message: 'hello', every: '30 days' } as const;
  await client.schedule.create({ ...schedule, id: canary('schedule'), to: canary('target') });
  await client.schedule.trigger(canary('schedule'));
  await expect
    .poll(async () => await client.status(canary('target')).catch(() => null))
    .toMatchObject({ status: 'waiting_message' });
  await client.send(canary('sent'), 'hello', { start: { agent: 'clerk' } });
  const fork = await client.fork(run, { id: canary('fork'), message: 'hello' });
  expect(await client.result(fork)).toMatchObject({ answer: 'hello' });
  const [done] = await client.batch('clerk', ['hello'], { id: canary('batch') }).all();
  expect(done?.outcome).toMatchObject({ answer: 'hello' });
  await expect(client.status(canary('unknown'))).rejects.toThrow(canary('unknown'));
}

type Post = (path: string, body?: unknown) => Promise<{ status: number; text: string }>;

async function actAtDoors(post: Post): Promise<void> {
  const started = await post('/v1/runs', { agent: 'clerk', message: 'hello', id: canary('http') });
  expect([started.status, started.text]).toEqual([201, expect.anything()]);
  const asked = [
    await post(`/v1/runs/${canary('http')}`),
    await post(`/v1/runs/${canary('http')}/transcript`),
    await post('/v1/responses', {
      model: 'clerk',
      input: 'hello',
      conversation: `conv_${canary('conversation')}`,
    }),
    await post('/v1/ui/clerk', {
      id: canary('chat'),
      messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'hello' }] }],
    }),
    await post('/v1/ag-ui/clerk', {
      threadId: canary('thread'),
      runId: 'r1',
      state: {},
      messages: [{ id: 'm1', role: 'user', content: 'hello' }],
      tools: [],
      context: [],
      forwardedProps: {},
    }),
  ];
  expect(asked.map(({ status, text }) => (status === 200 ? 200 : text))).toEqual(
    asked.map(() => 200),
  );
  const unknown = await post(`/v1/runs/${canary('unknown')}`);
  expect([unknown.status, unknown.text]).toEqual([404, expect.stringContaining('there is no run')]);
}

async function bytesBelow(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const texts = files.map(
    async (file) => await readFile(join(file.parentPath, file.name), 'latin1'),
  );
  return (await Promise.all(texts)).join('\n');
}

test('with hashed ids, nothing that a caller has named is on disk or in a log', async () => {
  expect(await plant({ [KEYS_VARIABLE]: keys, [HASH_IDS_VARIABLE]: 'k1' })).toEqual([]);
});

test('with keys alone, each of them is found, so the other test can fail', async () => {
  expect(await plant({ [KEYS_VARIABLE]: keys })).toEqual(expect.arrayContaining([...NAMED]));
});
