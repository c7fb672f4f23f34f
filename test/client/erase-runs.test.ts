import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { audit } from '../../src/cli/commands/audit.js';
import { erase } from '../../src/cli/commands/erase.js';
import {
  type EraseOptions,
  type PerdureClient,
  auditRuns,
  createClient,
  eraseRuns,
} from '../../src/client.js';
import { defineConfig } from '../../src/config.js';
import { fileBlobStore } from '../../src/storage/file-stores.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { type RunningWorker, createWorker } from '../../src/worker/create-worker.js';
import { sourceBundle } from '../support/bundle.js';
import { childScript } from '../support/child-script.js';
import { type Place, runInProcess } from '../support/in-process.js';
import { encryptingCodec } from '../support/payload-codec.js';
import { testServer } from '../support/temporal-server.js';

/** The server deletes a history once it has noted that the tasks of its end are done, by default every 30 s. */
const temporal = await testServer(
  ['transfer', 'visibility'].map((queue) => `history.${queue}ProcessorUpdateAckInterval="500ms"`),
);
const home = await mkdtemp(join(tmpdir(), 'perdure-erase-'));
const server = {
  home,
  address: temporal.address,
  env: { TEMPORAL_ADDRESS: temporal.address, PERDURE_HOME: home },
};
const taskQueue = `erase-${randomUUID()}`;
const place: Place = { home: server.home, env: server.env, address: server.address };
let client: PerdureClient;
let connection: Connection;
let worker: RunningWorker;

const load = defineTool({
  name: 'load',
  description: 'Loads a large text.',
  input: z.object({ what: z.string() }),
  effect: 'read',
  execute: ({ what }) => `${what} ${'z'.repeat(400_000)}`,
});
/** What `hold` reports while it waits. */
let reported = '';
const hold = defineTool({
  name: 'hold',
  description: 'Waits until it is canceled.',
  input: z.object({}),
  effect: 'read',
  heartbeat: '30 seconds',
  execute: async (_input, context) => {
    context.heartbeat({ at: reported });
    await once(context.signal, 'abort');
    return 'canceled';
  },
});
const helper = defineAgent({
  name: 'helper',
  description: 'Helps.',
  instructions: 'Help.',
  model: 'm',
  tools: [load],
});
const desk = defineAgent({
  name: 'desk',
  instructions: 'Load what is asked for.',
  model: 'm',
  tools: [load, hold],
  agents: [helper],
});
const model = {
  async call({ messages }: { readonly messages: readonly { role: string; text?: string }[] }) {
    const last = messages.at(-1);
    if (last?.role !== 'user') return replyText('Done.');
    if (last.text === 'hold') return replyCall('hold', {});
    const [, word, what = ''] = /(load|help) (\S+)/.exec(last.text ?? '') ?? [];
    if (word === 'help') return replyCall('helper', { message: `load ${what}` });
    return word === 'load' ? replyCall('load', { what }) : replyText('Hello.');
  },
};

beforeAll(async () => {
  client = await createClient({ env: server.env, taskQueue, by: 'ann' });
  connection = await Connection.connect({ address: server.address });
  worker = await createWorker({
    config: defineConfig({ agents: [desk, helper], models: { m: model } }),
    address: server.address,
    taskQueue,
    env: server.env,
    workflowBundle: await sourceBundle(),
    shutdownGrace: 200,
  });
});
afterAll(async () => {
  await client?.disconnect();
  await worker?.shutdown();
  await connection?.close();
  await temporal.stop();
  await rm(home, { recursive: true, force: true });
});

interface Started {
  readonly word: string;
  readonly how?: 'load' | 'help';
  readonly tags?: readonly string[];
  readonly end?: boolean;
}

/** Starts an archived run that loads a large text with a word, and that has an artifact with it. */
async function play({ word, how = 'load', tags = [], end = true }: Started): Promise<string> {
  const { id } = await client.start('desk', {
    id: `desk-${randomUUID()}`,
    open: true,
    message: `${how} ${word}`,
    tags,
    artifacts: { orders: { text: `${word} ${'o'.repeat(300_000)}` } },
  });
  await client.result(id, { turn: 1 });
  if (end) await close(id);
  return id;
}

/** Closes a run, and waits until the server lists it as closed. */
async function close(id: string): Promise<void> {
  await client.close(id);
  await expect
    .poll(async () => (await client.list({ idPrefix: id })).rows[0]?.closedAt, { timeout: 20_000 })
    .toBeTypeOf('string');
}

/** Returns the stored texts and archived histories that contain a word. */
async function filesWith(word: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const folder of ['blobs', 'archive']) {
    const below = join(server.home, folder);
    for (const entry of await readdir(below, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = join(entry.parentPath, entry.name);
      const bytes = await readFile(file);
      // Payloads of archived histories are in base64.
      const plain = bytes
        .toString()
        .replaceAll(/"data":\s*"([^"]+)"/g, (_, data: string) =>
          Buffer.from(data, 'base64').toString(),
        );
      if (plain.includes(word)) found.push(file);
    }
  }
  return found;
}

async function eraseNow(options: Partial<EraseOptions>) {
  return await eraseRuns(client, { by: 'eve', grace: 0, ...options });
}

test('an erased run leaves no byte in the stores, and other runs keep the texts that they share', async () => {
  const [mine, ours] = [`cnry-${randomUUID()}`, `cnry-${randomUUID()}`];
  const id = await play({ word: mine });
  const shared = await play({ word: ours });
  const other = await play({ word: ours });
  expect((await filesWith(mine)).length).toBeGreaterThanOrEqual(3);

  const { runs, refused, removed, left, unreadable, erasure } = await eraseNow({
    runs: [id, shared],
  });
  expect({ refused, unreadable }).toEqual({ refused: [], unreadable: [] });
  expect(runs.map((run) => run.id)).toEqual([id, shared]);
  expect(removed).toMatchObject({ histories: 2, archived: 2 });
  expect(removed.blobs).toBeGreaterThanOrEqual(2);
  expect(new Set(left.map(({ what, why }) => `${what} ${why}`))).toEqual(new Set(['blob used']));
  expect(await filesWith(mine)).toEqual([]);
  expect((await filesWith(ours)).length).toBeGreaterThanOrEqual(3);
  await expect(client.status(id)).rejects.toThrow('there is no run');
  const read = JSON.stringify(await client.transcript(other));
  expect(read).toContain(ours);
  for (const file of await filesWith(id)) expect(file).toContain('_erasures');
  expect(await auditRuns(client, [id])).toMatchObject([
    { run: id, type: 'erased', by: 'eve', erasure, complete: true },
  ]);
  const again = await eraseNow({ runs: [id] });
  expect(again.refused).toMatchObject([
    { id, why: expect.stringContaining('it was erased at 20') },
  ]);
  await eraseNow({ runs: [other] });
  expect(await filesWith(ours)).toEqual([]);
});

test('the runs of called agents are erased with their caller, and never without it while it is open', async () => {
  const word = `cnry-${randomUUID()}`;
  const id = await play({ word, how: 'help', end: false });
  const { rows } = await client.list({ root: id });
  const [child] = rows;
  if (child === undefined) throw new Error('no agent was called');
  for (const one of [id, child.id]) {
    const { runs, refused, removed } = await eraseNow({ runs: [one] });
    expect(runs).toEqual([]);
    expect(removed).toEqual({ histories: 0, archived: 0, blobs: 0 });
    expect(refused).toMatchObject([{ why: expect.stringContaining('has not ended') }]);
  }
  expect((await filesWith(word)).length).toBeGreaterThan(1);
  await close(id);
  const { runs, left } = await eraseNow({ runs: [id] });
  expect(runs.map((run) => run.id)).toEqual([id, child.id]);
  expect(left).toEqual([]);
  expect(await filesWith(word)).toEqual([]);
});

test('an erasure that is killed anywhere continues with the next call', async () => {
  const word = `cnry-${randomUUID()}`;
  const id = await play({ word });
  const before = (await filesWith(word)).length;
  for (const KILL_ON of ['archived', 'blob', 'history']) {
    const script = childScript(new URL('../support/erasing-process.ts', import.meta.url));
    const env = { ...process.env, ...server.env, RUN: id, KILL_ON };
    const child = spawn(process.execPath, script, { env, stdio: ['ignore', 'inherit', 'inherit'] });
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
    expect((await filesWith(word)).length).toBeLessThan(before);
    expect(await auditRuns(client, [id])).toContainEqual(
      expect.objectContaining({ type: 'erased', complete: false }),
    );
  }
  const done = await runInProcess(erase, { ids: [id], yes: true, by: 'joe', grace: 0 }, place);
  expect(done).toMatchObject({ code: 0 });
  expect(done.stdout).toMatch(/^completed: the erasure \S+ that eve began at 20/);
  expect(await filesWith(word)).toEqual([]);
  expect(await auditRuns(client, [id])).toMatchObject([{ by: 'eve', complete: true }]);
});

test('texts within the grace period stay until a later erasure', async () => {
  const word = `cnry-${randomUUID()}`;
  const id = await play({ word });
  const orphan = await fileBlobStore(join(server.home, 'blobs')).put(`orphan of ${word}`);
  const { left, removed } = await eraseRuns(client, { by: 'eve', runs: [id], orphans: true });
  expect(removed).toMatchObject({ histories: 1, archived: 1, blobs: 0 });
  expect(new Set(left.map(({ why }) => why))).toEqual(new Set(['grace']));
  expect(left.map(({ name }) => name)).not.toContain(orphan.sha256);
  expect(await auditRuns(client, [id])).toMatchObject([{ complete: false }]);
  expect((await filesWith(word)).length).toBe(left.length + 1);
  const later = await eraseNow({ orphans: true });
  expect(later.continued).toMatchObject([{ runs: [{ id }], left: 0, blobs: [] }]);
  expect(later.removed).toEqual({ histories: 0, archived: 0, blobs: 1 });
  expect(await filesWith(word)).toEqual([]);
});

test('perdure erase shows what it would remove, asks, and erases by tag and by age', async () => {
  const [word, tag] = [`cnry-${randomUUID()}`, `t-${randomUUID()}`];
  const id = await play({ word, tags: [tag] });
  const open = await play({ word, tags: [tag], end: false });
  const all = await filesWith(word);
  const given = { ids: [], tag: [tag], by: 'joe', grace: 0 };
  await expect(runInProcess(erase, given, place)).rejects.toThrow('--yes: expected');
  const shown = await runInProcess(erase, { ...given, dryRun: true }, place);
  expect(shown.stdout).toContain(`would erase ${id}`);
  expect(shown.stdout).toContain(`not erased: ${open}: it has not ended`);
  const old = { ids: [], before: '1h', yes: true, grace: 0 };
  expect((await runInProcess(erase, old, place)).stderr).toContain('There is nothing to erase.');
  expect(await filesWith(word)).toEqual(all);

  const done = await runInProcess(erase, { ...given, yes: true }, { ...place, json: true });
  expect(done.code).toBe(1);
  expect(JSON.parse(done.stdout)).toMatchObject({ runs: [{ id }], refused: [{ id: open }] });
  await close(open);
  const since = new Date().toISOString();
  const rest = await runInProcess(erase, { ids: [], before: since, yes: true, grace: 0 }, place);
  expect(rest).toMatchObject({ code: 0 });
  expect(rest.stdout).toContain(`erased ${open}\nremoved 1 history, 1 history of the archive, `);
  expect(await filesWith(word)).toEqual([]);
  const log = await runInProcess(audit, { ids: [], since: '1h' }, place);
  const entries = log.stdout.split('\n').map((line): unknown => JSON.parse(line));
  for (const run of [id, open])
    expect(entries).toContainEqual(expect.objectContaining({ type: 'erased', run }));
});

test('no text is removed while anything that may refer to it cannot be read', async () => {
  const word = `cnry-${randomUUID()}`;
  const id = await play({ word });
  const texts = (await filesWith(word)).filter((file) => !file.includes('archive'));
  const foreign = new Client({
    connection,
    dataConverter: { payloadCodecs: [encryptingCodec('theirs', randomBytes(32))] },
  });
  const encoded = await foreign.workflow.start('agent', {
    taskQueue: 'nowhere',
    workflowId: `encoded-${randomUUID()}`,
    args: [{ agent: 'desk' }],
  });
  const { left, unreadable, removed } = await eraseNow({ runs: [id], orphans: true });
  expect(removed).toMatchObject({ histories: 1, archived: 1, blobs: 0 });
  expect(new Set(left.map(({ why }) => why))).toEqual(new Set(['unknown_use']));
  expect(unreadable.join()).toContain(encoded.workflowId);
  expect(await filesWith(word)).toEqual(texts);

  await encoded.terminate();
  const { refused } = await eraseNow({ runs: [encoded.workflowId] });
  expect(refused).toMatchObject([{ why: expect.stringContaining('cannot be read') }]);
  await foreign.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: encoded.workflowId },
  });
  await expect.poll(async () => (await eraseNow({ orphans: true })).unreadable).toEqual([]);
  expect(await filesWith(word)).toEqual([]);
});

test('a text stays that only a heartbeat, a schedule, another namespace, or a new run names', async () => {
  const blobs = fileBlobStore(join(server.home, 'blobs'));
  const put = async (text: string) => (await blobs.put(`${text} ${randomUUID()}`)).sha256;
  const inner = await put('inner');
  const held = {
    heartbeat: await put('heartbeat'),
    schedule: await put('schedule'),
    namespace: await put('namespace'),
    workflow: await put(`workflow, which names ${inner}`),
  };
  const free = await put('free');

  reported = held.heartbeat;
  const { id } = await client.start('desk', 'hold');
  const raw = new Client({ connection });
  const beats = async (): Promise<boolean> =>
    (await raw.workflow.getHandle(id).describe()).raw.pendingActivities?.some(
      ({ heartbeatDetails }) => heartbeatDetails?.payloads?.length,
    ) ?? false;
  await expect.poll(beats, { timeout: 20_000 }).toBe(true);
  const started = { workflowType: 'other', taskQueue: 'nowhere' };
  const schedule = await raw.schedule.create({
    scheduleId: `s-${randomUUID()}`,
    spec: { intervals: [{ every: '30 days' }] },
    action: { type: 'startWorkflow', ...started, args: [{ blob: held.schedule }] },
  });
  const namespace = `elsewhere-${randomUUID()}`;
  await raw.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
  });
  const elsewhere = new Client({ connection, namespace });
  const start = async (from: Client, blob: string) =>
    await from.workflow.start('other', {
      taskQueue: 'nowhere',
      workflowId: `w-${randomUUID()}`,
      args: [{ blob }],
    });
  await expect
    .poll(async () => await start(elsewhere, held.namespace).catch(() => null), { timeout: 30_000 })
    .not.toBeNull();
  const other = await start(raw, held.workflow);

  const only = await eraseNow({ orphans: true, dryRun: true, namespaces: [] });
  expect(only.removed.blobs).toBe(2);
  const { removed, unreadable } = await eraseNow({ orphans: true });
  expect(unreadable).toEqual([]);
  expect(removed).toEqual({ histories: 0, archived: 0, blobs: 1 });
  const names = async () => (await blobs.erasure?.list())?.map(({ sha256 }) => sha256) ?? [];
  expect(await names()).toEqual(expect.arrayContaining([...Object.values(held), inner]));
  expect(await names()).not.toContain(free);

  await client.cancel(id);
  await schedule.delete();
  await other.terminate();
  await raw.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: other.workflowId },
  });
  await expect
    .poll(async () => await eraseNow({ orphans: true }).then(names), { timeout: 30_000 })
    .toEqual([held.namespace]);
});
