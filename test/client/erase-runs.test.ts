import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { audit } from '../../src/cli/commands/audit.js';
import { erase } from '../../src/cli/commands/erase.js';
import { type EraseOptions, type PerdureClient, auditRuns, eraseRuns } from '../../src/client.js';
import type { ArchivedHistory } from '../../src/storage/blob-store.js';
import { fileBlobStore } from '../../src/storage/file-stores.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { childScript } from '../support/child-script.js';
import { type ErasingRig, createErasingRig, erasableStores, load } from '../support/erasing-rig.js';
import { type Place, runInProcess } from '../support/in-process.js';
import { ownCaller } from '../support/own-caller.js';
import { ownNamespace } from '../support/own-namespace.js';
import { encryptingCodec } from '../support/payload-codec.js';

let rig: ErasingRig;
let place: Place;
let client: PerdureClient;

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
const common = { instructions: 'Load what is asked for.', model: 'm', tools: [load] };
const helper = defineAgent({ ...common, name: 'helper', description: 'Helps.' });
const spare = defineAgent({ ...common, name: 'spare' });
const desk = defineAgent({ ...common, name: 'desk', tools: [load, hold], agents: [helper] });

beforeAll(async () => {
  rig = await createErasingRig([desk, helper, spare]);
  ({ client } = rig);
  place = { home: rig.home, env: rig.env, address: rig.address };
});
afterAll(async () => await rig?.end());

async function listedAsClosed(id: string): Promise<void> {
  const closedAt = async () => (await client.list({ idPrefix: id })).rows[0]?.closedAt;
  await expect.poll(closedAt, { timeout: 20_000 }).toBeTypeOf('string');
}

/** Deletes a run on the server, as the retention of the namespace does. */
async function forget(id: string): Promise<void> {
  const workflowExecution = { workflowId: id };
  await rig.raw.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution,
  });
  const listed = async () =>
    (await client.list({ idPrefix: id, all: true })).rows.map((row) => row.id);
  await expect.poll(listed, { timeout: 20_000 }).not.toContain(id);
  await expect.poll(async () => await rig.onServer(id), { timeout: 20_000 }).toEqual([]);
}

/** Archives the history of a run as it is. Only open runs are archived by themselves. */
async function putInArchive(id: string): Promise<ArchivedHistory> {
  const handle = rig.raw.workflow.getHandle(id);
  const { runId } = await handle.describe();
  const history = await handle.fetchHistory();
  const entry = { firstRunId: runId, runId, events: history.events?.length ?? 0, at: 1 };
  const { archive } = erasableStores(rig);
  await archive.write({ namespace: 'default', id }, entry, historyToJSON(history));
  return entry;
}

async function entriesOf(id: string) {
  return await erasableStores(rig).archive.list({ namespace: 'default', id });
}

async function eraseNow(options: Partial<EraseOptions>) {
  return await eraseRuns(client, { by: 'eve', grace: 0, ...options });
}

test('an erased run leaves no byte in the stores, and other runs keep the texts that they share', async () => {
  const [mine, ours] = [`cnry-${randomUUID()}`, `cnry-${randomUUID()}`];
  const id = await rig.play({ word: mine });
  const shared = await rig.play({ word: ours });
  const other = await rig.play({ word: ours });
  expect((await rig.filesWith(mine)).length).toBeGreaterThanOrEqual(3);

  const { runs, refused, removed, left, unreadable, erasure } = await eraseNow({
    runs: [id, shared],
  });
  expect({ refused, unreadable }).toEqual({ refused: [], unreadable: [] });
  expect(runs.map((run) => run.id)).toEqual([id, shared]);
  expect(removed).toMatchObject({ histories: 2, archived: 2 });
  expect(removed.blobs).toBeGreaterThanOrEqual(2);
  expect(new Set(left.map(({ what, why }) => `${what} ${why}`))).toEqual(new Set(['blob used']));
  expect(await rig.filesWith(mine)).toEqual([]);
  expect((await rig.filesWith(ours)).length).toBeGreaterThanOrEqual(3);
  await expect(client.status(id)).rejects.toThrow('there is no run');
  const read = JSON.stringify(await client.transcript(other));
  expect(read).toContain(ours);
  for (const file of await rig.filesWith(id)) expect(file).toContain('_erasures');
  expect(await auditRuns(client, [id])).toMatchObject([
    { run: id, type: 'erased', by: 'eve', erasure, complete: true },
  ]);
  const again = await eraseNow({ runs: [id] });
  expect(again.refused).toMatchObject([
    { id, why: expect.stringContaining('it was erased at 20') },
  ]);
  await eraseNow({ runs: [other] });
  expect(await rig.filesWith(ours)).toEqual([]);
});

test('the runs of called agents are erased with their caller, and never without it while it is open', async () => {
  const word = `cnry-${randomUUID()}`;
  const id = await rig.play({ word, how: 'help', end: false });
  const { rows } = await client.list({ root: id });
  const [child] = rows;
  if (child === undefined) throw new Error('no agent was called');
  for (const one of [id, child.id]) {
    const { runs, refused, removed } = await eraseNow({ runs: [one] });
    expect(runs).toEqual([]);
    expect(removed).toEqual({ histories: 0, archived: 0, blobs: 0 });
    expect(refused).toMatchObject([{ why: expect.stringContaining('has not ended') }]);
  }
  expect((await rig.filesWith(word)).length).toBeGreaterThan(1);
  await rig.close(id);
  const { runs, left } = await eraseNow({ runs: [id] });
  expect(runs.map((run) => run.id)).toEqual([id, child.id]);
  expect(left).toEqual([]);
  expect(await rig.filesWith(word)).toEqual([]);
});

test('runs that a workflow of your own has started are erased once it has ended, with those that they have called', async () => {
  const word = `cnry-${randomUUID()}`;
  const server = { ...rig, client: rig.raw };
  const input = { agent: 'desk', message: `help ${word}`, tags: [word] };
  const { handle, runs: own } = await ownCaller(server, input, { stay: true });
  const [first = ''] = own;
  // The list has them, and not the agents that they have called.
  const { rows } = await client.list({ tag: word });
  expect(rows.map(({ id }) => id)).toEqual([...own].toReversed());
  const why = `workflow "${handle.workflowId}", which has called it, has not ended`;
  for (const selected of [{ runs: own }, { tag: word }]) {
    const { runs, refused } = await eraseNow(selected);
    expect(runs).toEqual([]);
    expect(refused.map((one) => one.why)).toEqual(
      own.map(() => expect.stringContaining(why) as string),
    );
  }
  await handle.terminate();
  const named = await eraseNow({ runs: [first] });
  expect(named.runs).toHaveLength(2);
  expect(named.runs[0]?.id).toBe(first);
  const { runs, refused } = await eraseNow({ tag: word });
  expect([runs.length, refused]).toEqual([2, []]);
  expect(await rig.filesWith(word)).toEqual([]);
});

test('runs that only the archive has are erased by their agent, with those that they have called', async () => {
  const word = `cnry-${randomUUID()}`;
  const mine = await rig.play({ word, how: 'help' });
  const theirs = await rig.play({ word, agent: 'spare' });
  const [child] = (await client.list({ root: mine })).rows;
  if (child === undefined) throw new Error('no agent was called');
  await putInArchive(child.id);
  const young = new Date();
  for (const id of [mine, child.id, theirs]) await forget(id);
  const archived = async () => await Promise.all([mine, child.id, theirs].map(entriesOf));
  const before = await archived();
  for (const entries of before) expect(entries.length).toBeGreaterThan(0);

  const { runs: ofHelper } = await eraseNow({ agent: 'helper', before: young });
  const early = await eraseNow({ agent: 'desk', before: '1h' });
  expect([ofHelper, early.runs, early.refused]).toEqual([[], [], []]);
  expect(await archived()).toEqual(before);
  const { runs } = await eraseNow({ agent: 'desk', before: young });
  expect(runs.map(({ id }) => id)).toEqual([mine, child.id]);
  expect(await archived()).toEqual([[], [], before[2]]);
  await eraseNow({ agent: 'spare' });
  expect(await rig.filesWith(word)).toEqual([]);
});

test('a run whose agent cannot be read is refused with the reason, on the server and in the archive', async () => {
  const foreign = new Client({
    connection: rig.raw.connection,
    dataConverter: { payloadCodecs: [encryptingCodec('theirs', randomBytes(32))] },
  });
  const run = { namespace: 'default', id: `encoded-${randomUUID()}` };
  const started = { taskQueue: 'nowhere', workflowId: run.id, args: [{ agent: 'desk' }] };
  const handle = await foreign.workflow.start('agent', started);
  await handle.terminate();
  await listedAsClosed(run.id);
  const refused = [{ id: run.id, why: expect.stringContaining('cannot be read') }];
  expect(await eraseNow({ agent: 'desk', before: new Date() })).toMatchObject({ refused });
  expect(await rig.onServer(run.id)).toEqual([run.id]);

  const entry = await putInArchive(run.id);
  await forget(run.id);
  expect(await eraseNow({ agent: 'desk', before: new Date() })).toMatchObject({ refused });
  expect(await entriesOf(run.id)).toEqual([entry]);
  await erasableStores(rig).erasure.remove(run, entry);
});

test('two erasures at the same time leave no text that only their runs share', async () => {
  const word = `cnry-${randomUUID()}`;
  const [one, two] = [await rig.play({ word }), await rig.play({ word, agent: 'spare' })];
  await Promise.all([eraseNow({ runs: [one] }), eraseNow({ runs: [two] })]);
  expect(await rig.onServer(one, two)).toEqual([]);
  expect(await rig.filesWith(word)).toEqual([]);
});

test('an erasure that is killed anywhere continues with the next call', async () => {
  const word = `cnry-${randomUUID()}`;
  const id = await rig.play({ word });
  const before = (await rig.filesWith(word)).length;
  for (const KILL_ON of ['archived', 'blob', 'history']) {
    const script = childScript(new URL('../support/erasing-process.ts', import.meta.url));
    const env = { ...process.env, ...rig.env, RUN: id, KILL_ON };
    const child = spawn(process.execPath, script, { env, stdio: ['ignore', 'inherit', 'inherit'] });
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
    expect((await rig.filesWith(word)).length).toBeLessThan(before);
    expect(await auditRuns(client, [id])).toContainEqual(
      expect.objectContaining({ type: 'erased', complete: false }),
    );
  }
  const done = await runInProcess(erase, { ids: [id], yes: true, by: 'joe', grace: 0 }, place);
  expect(done).toMatchObject({ code: 0 });
  expect(done.stdout).toMatch(/^completed: the erasure \S+ that eve began at 20/);
  expect(await rig.filesWith(word)).toEqual([]);
  expect(await auditRuns(client, [id])).toMatchObject([{ by: 'eve', complete: true }]);
});

test('texts within the grace period stay until a later erasure', async () => {
  const word = `cnry-${randomUUID()}`;
  const id = await rig.play({ word });
  const orphan = await fileBlobStore(join(rig.home, 'blobs')).put(`orphan of ${word}`);
  const { left, removed } = await eraseRuns(client, { by: 'eve', runs: [id], orphans: true });
  expect(removed).toMatchObject({ histories: 1, archived: 1, blobs: 0 });
  expect(new Set(left.map(({ why }) => why))).toEqual(new Set(['grace']));
  expect(left.map(({ name }) => name)).not.toContain(orphan.sha256);
  expect(await auditRuns(client, [id])).toMatchObject([{ complete: false }]);
  expect((await rig.filesWith(word)).length).toBe(left.length + 1);
  const later = await eraseNow({ orphans: true });
  expect(later.continued).toMatchObject([{ runs: [{ id }], left: 0, blobs: [] }]);
  expect(later.removed).toEqual({ histories: 0, archived: 0, blobs: 1 });
  expect(await rig.filesWith(word)).toEqual([]);
});

test('perdure erase shows what it would remove, asks, and erases by tag, by agent, and by age', async () => {
  const [word, tag] = [`cnry-${randomUUID()}`, `t-${randomUUID()}`];
  const id = await rig.play({ word, tags: [tag] });
  const open = await rig.play({ word, tags: [tag], end: false });
  const all = await rig.filesWith(word);
  const given = { ids: [], tag: [tag], by: 'joe', grace: 0 };
  await expect(runInProcess(erase, given, place)).rejects.toThrow('--yes: expected');
  await expect(runInProcess(erase, { ...given, agent: '', yes: true }, place)).rejects.toThrow(
    '--agent: expected a text',
  );
  const theirs = await runInProcess(erase, { ...given, agent: 'helper', yes: true }, place);
  expect(theirs.stderr).toContain('There is nothing to erase.');
  const shown = await runInProcess(erase, { ...given, dryRun: true }, place);
  expect(shown.stdout).toContain(`would erase ${id}`);
  expect(shown.stdout).toContain(`not erased: ${open}: it has not ended`);
  const old = { ids: [], before: '1h', yes: true, grace: 0 };
  expect((await runInProcess(erase, old, place)).stderr).toContain('There is nothing to erase.');
  expect(await rig.filesWith(word)).toEqual(all);

  const mine = { ...given, agent: 'desk', yes: true };
  const done = await runInProcess(erase, mine, { ...place, json: true });
  expect(done.code).toBe(1);
  expect(JSON.parse(done.stdout)).toMatchObject({ runs: [{ id }], refused: [{ id: open }] });
  await rig.close(open);
  const since = new Date().toISOString();
  const rest = await runInProcess(erase, { ids: [], before: since, yes: true, grace: 0 }, place);
  expect(rest).toMatchObject({ code: 0 });
  expect(rest.stdout).toContain(`erased ${open}\nremoved 1 history, 1 history of the archive, `);
  expect(await rig.filesWith(word)).toEqual([]);
  const log = await runInProcess(audit, { ids: [], since: '1h' }, place);
  const entries = log.stdout.split('\n').map((line): unknown => JSON.parse(line));
  for (const run of [id, open])
    expect(entries).toContainEqual(expect.objectContaining({ type: 'erased', run }));
});

test('no text is removed while anything that may refer to it cannot be read', async () => {
  const word = `cnry-${randomUUID()}`;
  const id = await rig.play({ word });
  const texts = (await rig.filesWith(word)).filter((file) => !file.includes('archive'));
  const foreign = new Client({
    connection: rig.raw.connection,
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
  expect(await rig.filesWith(word)).toEqual(texts);

  await encoded.terminate();
  const { refused } = await eraseNow({ runs: [encoded.workflowId] });
  expect(refused).toMatchObject([{ why: expect.stringContaining('cannot be read') }]);
  await foreign.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: encoded.workflowId },
  });
  await expect.poll(async () => (await eraseNow({ orphans: true })).unreadable).toEqual([]);
  expect(await rig.filesWith(word)).toEqual([]);
});

test('a text stays that only a heartbeat, a schedule, another namespace, or a new run names', async () => {
  const blobs = fileBlobStore(join(rig.home, 'blobs'));
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
  const { raw } = rig;
  const { connection } = raw;
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
  const namespace = await ownNamespace(connection);
  const elsewhere = new Client({ connection, namespace });
  const start = async (from: Client, blob: string) =>
    await from.workflow.start('other', {
      taskQueue: 'nowhere',
      workflowId: `w-${randomUUID()}`,
      args: [{ blob }],
    });
  await start(elsewhere, held.namespace);
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
