import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { audit } from '../../src/cli/commands/audit.js';
import {
  type AuditEntry,
  type PerdureClient,
  auditRuns,
  createClient,
  verifyAudit,
} from '../../src/client.js';
import { sha256Hex } from '../../src/core/text/json.js';
import { ArchiveError } from '../../src/storage/blob-store.js';
import { openStores } from '../../src/storage/file-stores.js';
import { replyCall, replyText, scriptedModel } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { forgetSegments } from '../support/forget-run.js';
import { gate } from '../support/gate.js';
import { type Place, runInProcess } from '../support/in-process.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

const SECRETS = ['Refund order 17', 'Thanks', 'order-17', 'too late', 'Order 17?'];

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: () => 'late',
});
const note = defineTool({
  name: 'note',
  description: 'Notes.',
  input: z.object({ about: z.string() }),
  effect: 'keyed',
  execute: () => 'noted',
});
const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  input: z.object({ order: z.string() }),
  effect: 'once',
  approval: 'always',
  execute: () => 'paid',
});

let rig: Rig;
let client: PerdureClient;
let entries: readonly AuditEntry[];
let place: Place;
const id = `audit-${Date.now()}`;

beforeAll(async () => {
  rig = await createMemoryRig();
  place = { home: rig.home, client: rig.client, address: inject('temporalAddress') };
  client = await createClient({ client: rig.client, taskQueue: rig.taskQueue, home: rig.home });
  const clerk = defineAgent({
    name: 'clerk',
    description: 'Looks.',
    instructions: 'Look.',
    model: 'clerk',
    tools: [look, note],
  });
  const desk = defineAgent({
    name: 'desk',
    instructions: 'Help.',
    model: 'desk',
    tools: [refund],
    agents: [clerk],
  });
  const models = {
    desk: scriptedModel([
      replyCall('clerk', { message: 'Order 17?' }),
      replyCall('refund', { order: 'order-17' }),
      replyText('Paid.'),
      replyCall('refund', { order: 'order-17b' }),
      replyText('No.'),
    ]),
    clerk: scriptedModel([
      replyCall('look', { at: '17' }),
      replyCall('note', { about: 'order-17' }),
      replyText('It is late.'),
    ]),
  };
  await rig.worker([desk], { models, segment: { steps: 2, bytes: 2_000_000 } });
  const run = await client.start(desk, 'Refund order 17', { id, open: true, by: 'ann' });
  await decide({ as: 'approve', by: 'bob' });
  await client.result(run);
  await client.pause(run, { by: 'carl' });
  await client.resume(run, { by: 'carl' });
  await client.setLimits(run, { steps: 30 });
  await client.send(run, 'Thanks', { by: 'dora' });
  await decide({ as: 'deny', by: 'bob', note: 'too late' });
  await client.result(run, { turn: 2 });
  await client.close(run);
  await rig.end(rig.client.workflow.getHandle(id));
  entries = await auditRuns(client, [id]);
});
afterAll(async () => {
  await client?.disconnect();
  await rig?.close();
});

async function decide(as: { as: 'approve' | 'deny'; by: string; note?: string }): Promise<void> {
  const request = await vi.waitFor(
    async () => {
      const [pending] = (await client.status(id)).pending;
      if (pending === undefined) throw new Error('no request is open');
      return pending;
    },
    { timeout: 20_000, interval: 20 },
  );
  await client.resolve(id, { request: request.id, digest: request.digest, ...as });
}

/** Returns what happened, in a few words each. */
function told(log: readonly AuditEntry[]): readonly string[] {
  return log.map((entry) => {
    const by = entry.by === undefined ? '' : ` by ${entry.by}`;
    switch (entry.type) {
      case 'started':
        return `started ${entry.agent}${by}`;
      case 'sent':
        return `sent in turn ${entry.turn}${by}`;
      case 'decided':
        return `${[entry.what, entry.as].filter(Boolean).join(' ')}${by}`;
      case 'executed':
        return `executed ${entry.tool} ${entry.effect} ${String(entry.ok)}`;
      case 'ended':
        return `ended ${entry.reason}`;
      default:
        return entry.type;
    }
  });
}

describe('the audit log', () => {
  test('says who did what in a run and in the agents that it called, across segments', () => {
    expect(told(entries.filter(({ run }) => run === id))).toEqual([
      'started desk by ann',
      'sent in turn 1 by ann',
      'called',
      'resolve approve by bob',
      'executed refund once true',
      'pause by carl',
      'resume by carl',
      'setLimits',
      'sent in turn 2 by dora',
      'resolve deny by bob',
      'close',
      'ended closed',
    ]);
    expect(told(entries.filter(({ run }) => run !== id))).toEqual([
      'started clerk by ann',
      'sent in turn 1 by ann',
      'executed note keyed true',
      'ended answer',
    ]);
    const limits = entries.find((entry) => entry.type === 'decided' && entry.what === 'setLimits');
    expect(limits).toMatchObject({ limits: { turn: { steps: 30 } } });
  });

  test('holds digests and no text', () => {
    const text = JSON.stringify(entries);
    for (const secret of SECRETS) expect(text).not.toContain(secret);
    expect(text).toContain(sha256Hex('Refund order 17'));
  });

  const lines = (): string[] => entries.map((entry) => JSON.stringify(entry));

  test('is found unchanged, and its head is the hash of the last line', () => {
    const head = entries.at(-1)?.hash ?? '';
    expect(verifyAudit(lines().join('\n'), { head })).toEqual({
      ok: true,
      entries: entries.length,
      head,
    });
  });

  test('shows every changed, removed, added, and moved line', () => {
    for (const at of entries.keys()) {
      const changed = lines();
      changed[at] = (changed[at] ?? '').replace(/"at":"20/, '"at":"19');
      expect(verifyAudit(changed.join('\n'))).toMatchObject({ ok: false, line: at + 1 });
      const twice = lines();
      // A parser takes the last one, and a person reads the first.
      twice[at] = (twice[at] ?? '').replace('{', '{"by":"eve",');
      expect(verifyAudit(twice.join('\n'))).toMatchObject({ ok: false, line: at + 1 });
      const spaced = lines();
      spaced[at] = (spaced[at] ?? '').replace(':', ': ');
      expect(verifyAudit(spaced.join('\n'))).toMatchObject({ ok: false, line: at + 1 });
      const removed = lines().toSpliced(at, 1);
      const isLast = at === entries.length - 1;
      expect(verifyAudit(removed.join('\n')).ok).toBe(isLast);
      const doubled = lines().toSpliced(at, 0, lines()[at] ?? '');
      expect(verifyAudit(doubled.join('\n'))).toMatchObject({ ok: false, line: at + 2 });
    }
    expect(verifyAudit(lines().toReversed().join('\n'))).toMatchObject({ ok: false, line: 1 });
    expect(verifyAudit(lines().join('\r\n'))).toMatchObject({ ok: true });
  });

  test('without its last lines is found by the head alone', () => {
    const cut = lines().slice(0, -2).join('\n');
    expect(verifyAudit(cut).ok).toBe(true);
    expect(verifyAudit(cut, { head: entries.at(-1)?.hash ?? '' })).toMatchObject({
      ok: false,
      problem: expect.stringContaining('entries are missing'),
    });
  });

  test.each(['x', '[]', '{"n":0}', '{"n":0,"previous":"","hash":""}', '{'])(
    'refuses %s',
    (line) => {
      expect(verifyAudit(line)).toMatchObject({ ok: false, line: 1 });
    },
  );
});

describe('perdure audit', () => {
  test('writes the log, and checks it', async () => {
    const out = join(rig.home, 'audit.jsonl');
    const written = await runInProcess(audit, { ids: [id], out }, place);
    const head = entries.at(-1)?.hash ?? '';
    expect(written.stderr).toContain(
      `${entries.length} entries of 2 runs written to ${out}; keep the head elsewhere: ${head}`,
    );
    const checked = await runInProcess(audit, { ids: [], verify: out, head }, place);
    expect(checked).toMatchObject({
      code: 0,
      stdout: `unchanged: ${entries.length} entries, head ${head}`,
    });
    const json = await runInProcess(
      audit,
      { ids: [id], out, force: true },
      { ...place, json: true },
    );
    expect(JSON.parse(json.stdout)).toEqual({ file: out, entries: entries.length, head });
    const text = await readFile(out, 'utf8');
    await writeFile(out, text.replace('"by":"bob"', '"by":"eve"'));
    const changed = await runInProcess(audit, { ids: [], verify: out }, place);
    expect(changed.code).not.toBe(0);
    expect(changed.stdout).toContain('changed: line');
  });

  test('writes no line without entries, and escapes what is hidden in one', async () => {
    const lines: string[] = [];
    const counted: typeof audit = {
      run: async (context, options) =>
        await audit.run({ ...context, out: (line) => lines.push(line) }, options),
    };
    await runInProcess(counted, { ids: [], tag: [`none-${id}`] }, place);
    expect(lines).toEqual([]);
    const odd = `${id}-odd`;
    await client.start('desk', { id: odd, open: true, by: 'eve\u{e0001}' });
    await runInProcess(counted, { ids: [odd] }, place);
    await rig.client.workflow.getHandle(odd).terminate();
    expect(lines[0]).toContain(String.raw`"by":"eve\udb40\udc01"`);
    const file = join(rig.home, 'stdout.jsonl');
    await writeFile(file, lines.join('\n'));
    expect(await runInProcess(audit, { ids: [], verify: file }, place)).toMatchObject({ code: 0 });
  });

  test.each([
    [{ ids: [] }, 'ids: expected ids of runs, or --tag, --since, or --before'],
    [{ ids: ['x'], tag: ['y'] }, 'instead of ids'],
    [{ ids: ['x'], head: 'y' }, '--head: expected only with --verify'],
    [{ ids: ['x'], verify: 'y' }, 'ids: expected none with --verify'],
    [{ ids: [], verify: '/nowhere' }, '--verify: expected a readable file'],
  ])('refuses %j', async (options, message) => {
    await expect(runInProcess(audit, options, place)).rejects.toThrow(message);
  });
});

test('a call that is under way when its run is terminated is in the log', async () => {
  const door = gate();
  const hold = defineTool({
    name: 'hold',
    description: 'Holds.',
    input: z.object({}),
    effect: 'once',
    execute: async () => await door.wait(),
  });
  const agent = defineAgent({ name: 'holder', instructions: 'Hold.', model: 'm', tools: [hold] });
  await rig.worker([agent], { models: { m: scriptedModel([replyCall('hold', {})]) } });
  const run = await client.start(agent, 'Hold');
  rig.exempt('the test terminates it', run.id);
  await door.reached;
  const before = told(await auditRuns(client, [run]));
  expect(before.filter((act) => act.startsWith('executed'))).toEqual([]);
  await rig.client.workflow.getHandle(run.id).terminate();
  const after = told(await auditRuns(client, [run]));
  expect(after.slice(-2)).toEqual(['executed hold once null', 'ended null']);
  door.release();
});

test('the log of an id has all runs that have used it, also those of the archive', async () => {
  const nightly = `nightly-${Date.now()}`;
  const agent = defineAgent({ name: 'nightly', instructions: 'Look.', model: 'nightly' });
  const model = scriptedModel(['One.', 'Two.', 'Three.'].map((text) => replyText(text)));
  await rig.worker([agent], { models: { nightly: model } });
  const handle = rig.client.workflow.getHandle(nightly);
  const runIds: string[] = [];
  for (const by of ['ann', 'bob', 'carl']) {
    await client.start(agent, by, { id: nightly, by, reuseId: true, archive: true });
    await rig.end(handle);
    runIds.push((await handle.describe()).runId);
  }
  const starts = ['started nightly by ann', 'started nightly by bob', 'started nightly by carl'];
  const begun = async () => {
    const log = told(await auditRuns(client, [nightly]));
    return log.filter((act) => act.startsWith('started'));
  };
  await vi.waitFor(async () => expect(await begun()).toEqual(starts));
  rig.exempt('the test deletes it', nightly);
  // In memory, all of them may have started in the same millisecond.
  await forgetSegments(rig.client, nightly, runIds.slice(0, 1));
  expect((await begun()).toSorted()).toEqual(starts);
  await forgetSegments(rig.client, nightly, runIds.slice(1));
  expect((await begun()).toSorted()).toEqual(starts);
});

describe('a called run', () => {
  const called = (): string => {
    const entry = entries.find(({ type }) => type === 'called');
    if (entry?.type !== 'called') throw new Error('no run was called');
    return entry.child;
  };

  test('that is gone is lost', async () => {
    const child = called();
    rig.exempt('the test deletes it', child);
    const parts = await segmentsOf(rig.client, child);
    const runIds = parts.map(({ runId }) => runId);
    await forgetSegments(rig.client, child, runIds);
    const log = await auditRuns(client, [id]);
    const rest = entries.filter(({ run }) => run !== child);
    expect(told(log)).toEqual([...told(rest), 'lost']);
    expect(log.at(-1)).toMatchObject({ run: child, type: 'lost', segment: runIds[0] });
    await expect(auditRuns(client, [child])).rejects.toThrow(/there is no run/);
  });

  test('that cannot be read makes the log fail', async () => {
    const { archive } = openStores(rig.home);
    const message = 'the archive is locked';
    const locked = await createClient({
      client: rig.client,
      home: rig.home,
      archive: {
        ...archive,
        list: async (run) => {
          if (run.id === called()) throw new ArchiveError(message, { kind: 'unreadable' });
          return await archive.list(run);
        },
      },
    });
    await expect(auditRuns(locked, [id])).rejects.toThrow(message);
  });
});

test('a damaged entry of the erasure log is in the audit log, and the command notes it', async () => {
  const erasure = '001700000000000-x';
  await openStores(rig.home).archive.erasure?.record(erasure, '{');
  const [first] = await auditRuns(client, [id]);
  expect(first).toMatchObject({
    run: '',
    at: new Date(1_700_000_000_000).toISOString(),
    type: 'damaged',
    erasure,
  });
  const { stderr } = await runInProcess(audit, { ids: [id] }, place);
  expect(stderr).toContain(`The entry ${erasure} of the erasure log is damaged`);
  await rm(join(rig.home, 'archive', '_erasures'), { recursive: true });
});

test('the audit log of a deleted run says what the archive has, and that the rest is lost', async () => {
  const segments = await segmentsOf(rig.client, id);
  expect(segments.length).toBeGreaterThan(1);
  rig.exempt('the test deletes it', id);
  await forgetSegments(
    rig.client,
    id,
    segments.map(({ runId }) => runId),
  );
  const whole = told(entries.filter(({ run }) => run === id));
  const archived = told((await auditRuns(client, [id])).filter(({ run }) => run === id));
  expect(archived.at(-1)).toBe('lost');
  expect(archived.length).toBeGreaterThan(segments.length);
  expect(whole).toEqual(expect.arrayContaining(archived.filter((act) => act !== 'lost')));
});
