import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport, getDefaultEnvironment } from '@modelcontextprotocol/client/stdio';
import { auditRuns } from '../../src/client/audit.js';
import { readCosts } from '../../src/client/costs.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { openClient, partsOfClient } from '../../src/client/create-client.js';
import { eraseRuns } from '../../src/client/erasure/erase-runs.js';
import { HASH_IDS_VARIABLE } from '../../src/encryption/hashed-ids.js';
import { type EncryptionOptions, KEYS_VARIABLE } from '../../src/encryption/keyring.js';
import { createServer } from '../../src/http.js';
import { recordRun } from '../../src/recordings/record-run.js';
import { type TestServer, startTestServer } from '../../src/server/test-server.js';
import { builtProgram } from '../support/built-program.js';
import { commandLine } from '../support/command.js';

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
    return last.text === 'pay' ? replyCall('pay', {}) : replyText('you said: ' + last.text);
  },
};
const clerk = defineAgent({ name: 'clerk', description: 'x', instructions: 'x', model: 'm', tools: [pay] });
export default defineConfig({
  agents: [clerk],
  models: { m: model },
  budgets: [{ tenant: 'acme', per: 'day', tokens: 1_000_000 }],
});
`;

const key = (): string => randomBytes(32).toString('base64');
const [k1, k2] = [key(), key()];
const hashing: EncryptionOptions = { keys: { k1, k2 }, current: 'k1', hashIds: 'k1' };
const FORM = /^h-[a-z2-7]{32}$/;
const cli = await commandLine();
let server: TestServer;
let env: Record<string, string>;
let client: PerdureClient;
/** The address of the worker's live streams. */
let live: string;
beforeAll(async () => {
  await writeFile(join(cli.folder, 'perdure.config.mjs'), CONFIG);
  server = await startTestServer();
  const keys = { [KEYS_VARIABLE]: `k1:${k1},k2:${k2}` };
  env = { ...server.env, ...keys, [HASH_IDS_VARIABLE]: 'k1' };
  const worker = cli.start(['worker'], { env });
  await worker.prints('with 1 agent: clerk');
  await worker.prints('Live stream: GET ');
  const [, address = ''] = /Live stream: GET (http:\/\/[\d.:]+)/.exec(worker.stderr()) ?? [];
  live = address;
  client = await openClient({ env });
});
afterAll(async () => {
  await client.disconnect();
  await server.close();
});

const open = async (encryption?: EncryptionOptions): Promise<PerdureClient> =>
  await openClient({ env: server.env, ...(encryption && { encryption }) });

const command = async (...args: readonly string[]) => {
  const config = ['--config', join(cli.folder, 'perdure.config.mjs')];
  return await cli.here([...args, ...config], { env }).ended;
};

test('a run is found by the id that its caller chose, and by the one that is printed', async () => {
  const prefix = `order-${randomUUID()}`;
  const given = `${prefix}-jane@example.com`;
  const { id } = await client.start('clerk', { id: given, message: 'hello', open: true });
  expect(id).toMatch(FORM);
  await client.result(given, { turn: 1 });
  const one = async (name: string) => [
    (await client.status(name)).id,
    (await client.transcript(name)).total,
    (await client.turns(name)).turns.length,
    (await client.calls(name)).length,
    (await client.requests({ run: name, root: name })).requests.length,
    (await client.list({ root: name })).rows.length,
    (await auditRuns(client, [name])).map(({ hash }) => hash),
    (await recordRun(client, name)).runs.map((run) => run.id),
    (await eraseRuns(client, { runs: [name], by: 'ann', dryRun: true })).refused.map(
      (run) => run.id,
    ),
  ];
  const found = await one(given);
  expect(found[0]).toBe(id);
  expect(await one(id)).toEqual(found);
  expect(await client.status(given)).toMatchObject({ id, givenId: given });
  const { rows } = await client.list({ idPrefix: prefix });
  expect(rows).toMatchObject([{ id, givenId: given }]);
  expect((await client.list({ idPrefix: id.slice(0, 20) })).rows).toMatchObject([{ id }]);
  await expect(client.start('clerk', { id: given, message: 'hello' })).rejects.toThrow(
    `a run "${given}" already exists`,
  );
  await expect(client.start('clerk', { id, message: 'hello' })).rejects.toThrow('already exists');
  for (const name of [given, id]) {
    const sent = await client.send(name, { message: 'again', id: 'm-1' });
    expect(sent).toMatchObject({ delivered: true, turn: 2, messageId: 'm-1' });
  }
  for (const name of [given, id]) {
    await client.pause(name);
    expect((await client.status(name)).status).toBe('paused');
    await client.resume(name);
    const { run } = await client.setLimits(name, { run: { tokens: 5_000 } });
    expect(run.tokens).toBe(5_000);
  }
  let text = '';
  for await (const part of client.text(given, { turn: 2 })) text += part;
  expect(text).toBe('you said: again');
  await client.close(given);
  await client.result(given);
  const types: string[] = [];
  for await (const event of client.events(given)) types.push(event.type);
  expect(types.at(-1)).toBe('run-ended');
  for (const name of [given, id]) {
    const response = await fetch(`${live}/runs/${encodeURIComponent(name)}/events`);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('"run-ended"');
  }
});

test('commands find a run by both ids, and show both', async () => {
  const prefix = `cli order ${randomUUID()}`;
  const [given, fork] = [`${prefix} 7`, `${prefix} 8`];
  const started = await command(
    'run',
    'clerk',
    'hello',
    '--id',
    given,
    '--open',
    '--json',
    '--detach',
  );
  const { id } = JSON.parse(started.stdout) as { id: string };
  expect(id).toMatch(FORM);
  await client.result(given, { turn: 1 });
  const taken = await command('run', 'clerk', 'hello', '--id', given, '--detach');
  expect(taken.stderr).toContain(`--id: expected an unused id, got ${given}`);
  for (const name of [given, id]) {
    for (const [words, expected] of [
      [['status'], given],
      [['transcript'], 'you said: hello'],
      [['transcript', '--turns'], ''],
      [['limits'], 'WHOLE RUN'],
      [['pause'], ''],
      [['resume'], ''],
      [['inbox'], ''],
      [['audit'], '"start'],
      [['export'], '"events"'],
      [['record', '--clear'], id],
      [['send', 'hello'], ''],
    ] as const) {
      const [first, ...rest] = words;
      const args = [first, name, ...rest];
      const { code, stdout, stderr } = await command(...args);
      expect([args, code, stderr]).toEqual([args, 0, expect.anything()]);
      expect(stdout).toContain(expected);
    }
  }
  const secret = { PERDURE_LIVE_TOKEN: 'x'.repeat(32) };
  const asked = cli.here(['live-token', given, '--json'], { env: { ...env, ...secret } });
  expect(JSON.parse((await asked.ended).stdout)).toMatchObject({ id });
  const { stdout: table } = await command('list', '--id-prefix', prefix);
  expect(table).toContain(given);
  expect(table).toContain(id);
  const forked = await command('fork', given, 'hello', '--id', fork, '--json');
  expect(forked.stdout).toContain('"status":"completed"');
  expect((await client.status(fork)).forkedFrom?.run).toBe(id);
  const closed = await command('close', given);
  expect(closed.code).toBe(0);
  const erased = await command('erase', given, fork, '--yes', '--by', 'ann', '--json');
  expect(JSON.parse(erased.stdout)).toMatchObject({ removed: { histories: 2 } });
  for (const name of ['status', 'attach', 'transcript']) {
    const { stderr } = await command(name, given);
    expect([stderr.includes(`no run "${given}"`), stderr.includes(id)]).toEqual([true, false]);
  }
});

test('a request is decided by both ids, and a decision that is sent again gets its answer', async () => {
  const given = `asks ${randomUUID()}`;
  const { id } = await client.start('clerk', { id: given, message: 'pay', open: true });
  await expect.poll(async () => (await client.status(given)).pending).toHaveLength(1);
  const { digest, id: request } = await client.request(id, 'r1');
  const again = { request, digest, as: 'deny' } as const;
  const receipts = await client.resolve(given, again, { id: 'd-1' });
  expect(await client.resolve(id, again, { id: 'd-1' })).toEqual(receipts);
  await client.result(given, { turn: 1 });
  await client.send(given, 'pay');
  await expect.poll(async () => (await client.status(given)).pending).toHaveLength(1);
  const next = await client.request(given, 'r2');
  const { code } = await command('approve', given, 'r2', '--digest', next.digest);
  expect(code).toBe(0);
  expect(await client.result(id, { turn: 2 })).toMatchObject({ answer: 'done' });
});

test('a generated id is found, and so is a message in a conversation of a door', async () => {
  const { id } = await client.start('clerk', 'hello');
  await client.result(id);
  const { givenId = '' } = await client.status(id);
  expect([id, givenId]).toEqual([
    expect.stringMatching(FORM),
    expect.stringMatching(/^clerk-\d{8}-/),
  ]);
  expect((await client.status(givenId)).id).toBe(id);

  const doors = await createServer({ client, env });
  const over = `over http ${randomUUID()}`;
  const ask = async (path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' };
    const init = body && { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await doors.fetch(new Request(`http://127.0.0.1${path}`, init));
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const start = { agent: 'clerk', message: 'hello', id: over, open: true };
  const first = await ask('/v1/runs', start);
  expect([first.status, first.body]).toEqual([
    201,
    { id: expect.stringMatching(FORM) as string, repeated: false },
  ]);
  expect((await ask('/v1/runs', start)).body).toEqual({ ...first.body, repeated: true });
  expect((await ask('/v1/runs', { ...start, message: 'other' })).status).toBe(409);
  const printed = String(first.body['id']);
  for (const name of [encodeURIComponent(over), printed]) {
    expect((await ask(`/v1/runs/${name}`)).body).toMatchObject({
      id: printed,
      givenId: over,
    });
    expect((await ask(`/v1/runs/${name}/transcript`)).status).toBe(200);
    expect(
      (await ask(`/v1/runs/${name}/messages`, { message: 'hi', id: 'one' })).body,
    ).toMatchObject({
      turn: 2,
    });
  }
  const rows = await ask(`/v1/runs?idPrefix=${encodeURIComponent(over)}`);
  expect(rows.body).toMatchObject({ rows: [{ id: printed, givenId: over }] });
  const name = `jane-${randomUUID()}`;
  const conversation = `conv_${name}`;
  const said = { model: 'clerk', input: 'hello', conversation };
  const one = await ask('/v1/responses', said);
  const two = await ask('/v1/responses', { ...said, input: 'and now?' });
  expect([one.status, two.status]).toEqual([200, 200]);
  expect((await client.status(`conversation-${name}`)).turn).toBe(2);
  expect((await ask(`/v1/responses/${String(two.body['id'])}`)).status).toBe(200);
});

test('an MCP client reads, messages, and cancels its run by both ids, and starts it once', async () => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [await builtProgram(), 'mcp', '--all-runs'],
    cwd: cli.folder,
    env: { ...getDefaultEnvironment(), ...env },
    stderr: 'ignore',
  });
  const caller = new Client({ name: 'test', version: '1' });
  await caller.connect(transport);
  const call = async (name: string, args: Record<string, unknown>) => {
    const answer = await caller.callTool({ name, arguments: args });
    expect([name, answer.isError ?? false, answer.content]).toEqual([
      name,
      false,
      expect.anything(),
    ]);
    return answer.structuredContent as Record<string, unknown>;
  };
  const start = { agent: 'clerk', message: 'hello', operation_id: randomUUID() };
  const started = await call('agent_start', start);
  expect(started).toEqual({ id: expect.stringMatching(FORM) as string, repeated: false });
  expect(await call('agent_start', start)).toEqual({ ...started, repeated: true });
  const id = String(started['id']);
  const { givenId } = await client.status(id);
  expect(givenId).toMatch(/^mcp-/);
  for (const name of [givenId, id]) {
    expect(await call('agent_result', { id: name })).toMatchObject({ answer: 'you said: hello' });
    expect(await call('agent_status', { id: name })).toMatchObject({ status: 'completed' });
  }
  const chosen = `over mcp ${randomUUID()}`;
  await client.start('clerk', { id: chosen, open: true });
  const sent = { id: chosen, message: 'hello', operation_id: randomUUID() };
  expect(await call('agent_send', sent)).toMatchObject({ delivered: true, turn: 1 });
  await call('agent_cancel', { id: chosen });
  await caller.close();
});

test('a schedule is found by both ids, and its runs by theirs', async () => {
  const given = `nightly ${randomUUID()}`;
  await client.schedule.create({ id: given, agent: 'clerk', message: 'hello', every: '30 days' });
  await expect(
    client.schedule.create({ id: given, agent: 'clerk', message: 'x', every: '1 day' }),
  ).rejects.toThrow(`schedule ${given} already exists`);
  const [row] = await client.schedule.list();
  expect(row).toMatchObject({ id: expect.stringMatching(FORM) as string, givenId: given });
  for (const name of [given, row?.id ?? '']) {
    await client.schedule.update(name, { every: '20 days' });
    await client.schedule.pause(name);
    expect(await client.schedule.describe(name)).toMatchObject({ givenId: given, paused: true });
  }
  await client.schedule.trigger(given);
  await expect
    .poll(async () => (await client.schedule.describe(given)).recent)
    .toEqual([expect.anything()]);
  const { recent } = await client.schedule.describe(given);
  expect(await client.result(recent[0]?.id ?? '')).toMatchObject({ answer: 'you said: hello' });
  expect((await command('schedule', 'list')).stdout).toContain(given);
  await client.schedule.delete(given);
  await expect(client.schedule.describe(given)).rejects.toThrow(`there is no schedule ${given}`);
});

test('a tenant has one hash for fair shares, budgets, costs, and rights', async () => {
  const given = `of acme ${randomUUID()}`;
  const path = `/v1/runs/${encodeURIComponent(given)}`;
  const run = await client.start('clerk', { id: given, message: 'hello', tenant: 'acme' });
  await client.result(run);
  const { tenant, givenTenant } = await client.status(run);
  expect([tenant, givenTenant]).toEqual([expect.stringMatching(FORM), 'acme']);
  expect((await readCosts(client, { by: 'tenant' })).rows).toContainEqual(
    expect.objectContaining({ name: 'acme' }),
  );
  expect((await command('list')).stdout).toMatch(/ acme /);
  const used = async (): Promise<number> => {
    const { stdout } = await command('budgets', '--json');
    expect(stdout).toContain('"name":"acme"');
    return Math.max(...[...stdout.matchAll(/"(?:spent|held)":(\d+)/g)].map(([, n]) => Number(n)));
  };
  await expect.poll(used).toBeGreaterThan(0);

  const principals = {
    ann: { rights: { clerk: 'all' }, tenant: 'acme' },
    bob: { rights: { clerk: 'all' }, tenant: 'other' },
  } as const;
  const doors = await createServer({
    client,
    serve: { principals },
    env: { ...env, PERDURE_SERVE_KEYS: 'ann:ann-ann-ann-ann-ann,bob:bob-bob-bob-bob-bob' },
  });
  const read = async (name: string, at: string) => {
    const headers = { authorization: `Bearer ${Array.from({ length: 5 }, () => name).join('-')}` };
    return await doors.fetch(new Request(`http://127.0.0.1${at}`, { headers }));
  };
  expect((await read('ann', path)).status).toBe(200);
  expect((await read('bob', path)).status).toBe(404);
  const listed = async (name: string) =>
    ((await (await read(name, '/v1/runs')).json()) as { rows: readonly { id: string }[] }).rows;
  expect((await listed('ann')).map(({ id }) => id)).toContain(run.id);
  expect(await listed('bob')).toEqual([]);
});

test('a client that does not hash, or with another key, says why it does not find a run', async () => {
  const given = `order of jane ${randomUUID()}`;
  const { id } = await client.start('clerk', { id: given, message: 'hello' });
  await using clear = await open({ keys: { k1 }, current: 'k1' });
  await expect(clear.status(given)).rejects.toMatchObject({
    code: 'no_run',
    message: expect.stringMatching(/"order of jane [^"]*"; .* this client hashes none/) as string,
  });
  expect((await clear.status(id)).id).toBe(id);
  await using other = await open({ keys: { k1, k2 }, current: 'k1', hashIds: 'k2' });
  await expect(other.status(given)).rejects.toMatchObject({
    code: 'no_run',
    message: expect.stringMatching(/no run "order of jane [^"]*"; .* with another key/) as string,
  });
  const env2 = { ...env, [HASH_IDS_VARIABLE]: 'k2' };
  const { stderr } = await cli.here(['status', given], { env: env2 }).ended;
  expect(stderr).toMatch(/no run "order of jane [^"]*"; .* with another key/);
  await using rotated = await open({ ...hashing, current: 'k2' });
  expect((await rotated.status(given)).id).toBe(id);
  const again = { id: given, message: 'x' };
  await expect(rotated.start('clerk', again)).rejects.toThrow('already exists');
});

test('a run from before ids were hashed keeps its id, and required never sends one', async () => {
  await using before = await open({ keys: { k1 }, current: 'k1' });
  const old = `older ${randomUUID()}`;
  await before.start('clerk', { id: old, message: 'hello', open: true });
  await before.result(old, { turn: 1 });
  expect(await client.status(old)).toMatchObject({ id: old });
  expect((await client.list({ idPrefix: old })).rows).toMatchObject([{ id: old }]);
  await expect(client.start('clerk', { id: old, message: 'x' })).rejects.toThrow('already exists');
  const sent = await client.send(old, 'again', { start: { agent: 'clerk' } });
  expect(sent).toMatchObject({ turn: 2 });
  await using strict = await open({ ...hashing, required: true });
  const asked = vi.spyOn(partsOfClient(strict).client.workflow, 'getHandle');
  await expect(strict.status(old)).rejects.toMatchObject({ code: 'no_run' });
  expect(asked.mock.calls.map(([id]) => id)).toEqual([expect.stringMatching(FORM)]);
  expect((await strict.status(`clear:${old}`)).id).toBe(old);
});
