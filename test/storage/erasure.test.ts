import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { followNames, namesIn } from '../../src/client/erasure/references.js';
import { keyringOf } from '../../src/encryption/keyring.js';
import { sealedBlobs } from '../../src/encryption/sealed-stores.js';
import { memoryObjects } from '../../src/memory/host.js';
import type { ArchivedText } from '../../src/storage/blob-store.js';
import { newErasureName, readRecords, writeRecord } from '../../src/storage/erasure-log.js';
import { openStores } from '../../src/storage/file-stores.js';
import { s3Stores } from '../../src/storage/s3-stores.js';
import { type Stores, archiveIn, blobsIn } from '../../src/storage/tool-lock.js';
import { archivedHistory, archivedRun as run } from '../support/archived.js';
import { S3_KEYS, startS3, type S3Server } from '../support/s3-server.js';

const ALWAYS = Number.POSITIVE_INFINITY;
let s3: S3Server;
let folder: string;
beforeAll(async () => {
  for (const [name, value] of Object.entries({ ...S3_KEYS, AWS_REGION: 'us-east-1' }))
    vi.stubEnv(name, value);
  s3 = await startS3();
  folder = await mkdtemp(path.join(tmpdir(), 'perdure-erasure-'));
});
afterAll(async () => {
  await s3.close();
  await rm(folder, { recursive: true, force: true });
  vi.unstubAllEnvs();
});

const STORES: Readonly<Record<string, () => Pick<Required<Stores>, 'archive' | 'blobs'>>> = {
  files: () => openStores(path.join(folder, randomUUID())),
  S3: () => s3Stores({ bucket: s3.bucket, endpoint: s3.endpoint, prefix: randomUUID() }),
  memory: () => ({ archive: archiveIn(memoryObjects()), blobs: blobsIn(memoryObjects()) }),
};

/** The parts for erasure, which these stores have. */
function erasureOf<Part>(erasure: Part | undefined): Part {
  if (erasure === undefined) throw new Error('the store has no erasure');
  return erasure;
}

describe.each(Object.entries(STORES))('erasure from %s', (_, open) => {
  test('lists and removes texts, and leaves those that were stored since', async () => {
    const { blobs } = open();
    const erasure = erasureOf(blobs.erasure);
    expect(await erasure.list()).toEqual([]);
    const begin = Date.now() - 5_000;
    const [one, other] = [await blobs.put('one'), await blobs.put('other')];
    const listed = await erasure.list();
    expect(listed.map(({ sha256 }) => sha256).toSorted()).toEqual(
      [one.sha256, other.sha256].toSorted(),
    );
    for (const { at } of listed) expect(at).toBeGreaterThan(begin);
    expect(await erasure.remove(one, begin)).toBe(false);
    expect(await blobs.get(one)).toBe('one');
    expect(await erasure.remove(one, Date.now() + 5_000)).toBe(true);
    await expect(blobs.get(one)).rejects.toMatchObject({ kind: 'missing' });
    expect(await erasure.remove(one, ALWAYS)).toBe(true);
    expect(await erasure.remove({ sha256: '0'.repeat(64) }, Date.now())).toBe(true);
    await expect(erasure.remove({ sha256: '../x' }, ALWAYS)).rejects.toMatchObject({
      kind: 'invalid',
    });
    expect((await erasure.list()).map(({ sha256 }) => sha256)).toEqual([other.sha256]);
    await blobs.put('one');
    expect(await blobs.get(one)).toBe('one');
  });

  test('lists and removes histories of one namespace or of all', async () => {
    const { archive } = open();
    const erasure = erasureOf(archive.erasure);
    const all = async (namespace: string | null): Promise<readonly string[]> => {
      const found: ArchivedText[] = [];
      for await (const one of erasure.all(namespace)) found.push(one);
      return found.map(({ history, json }) => `${history.events} ${json}`).toSorted();
    };
    const elsewhere = { namespace: 'Other Place', id: run.id };
    const [first, second] = [archivedHistory(1), archivedHistory(2)];
    await archive.write(run, first, 'one');
    await archive.write(run, second, 'two');
    await archive.write(elsewhere, first, 'three');
    await erasure.record(newErasureName(1), '{}');
    expect(await all(run.namespace)).toEqual(['1 one', '2 two']);
    expect(await all(null)).toEqual(['1 one', '1 three', '2 two']);
    await erasure.remove(run, first);
    await erasure.remove(run, first);
    expect(await archive.list(run)).toEqual([second]);
    expect(await all(null)).toEqual(['1 three', '2 two']);
  });

  test('keeps a log in order of time, by namespace, and names what is damaged', async () => {
    const log = erasureOf(open().archive.erasure);
    expect(await readRecords(log, 'default')).toEqual({ records: [], damaged: [] });
    const record = (at: number, namespace: string) => ({
      version: 1 as const,
      erasure: newErasureName(at),
      namespace,
      by: 'ann',
      startedAt: '2026-11-26T00:00:00.000Z',
      endedAt: null,
      runs: [{ id: 'r', segments: ['s'] }],
      blobs: [],
      planned: { histories: 1, archived: 0, blobs: 0 },
      removed: null,
      left: 0,
    });
    const [late, early, other] = [
      record(20, 'default'),
      record(3, 'default'),
      record(4, 'elsewhere'),
    ];
    for (const one of [late, early, other]) await writeRecord(log, one);
    await writeRecord(log, { ...late, left: 2 });
    const damaged = newErasureName(5);
    await log.record(damaged, '{"version":1}');
    expect(await readRecords(log, 'default')).toEqual({
      records: [early, { ...late, left: 2 }],
      damaged: [damaged],
    });
  });
});

describe('files', () => {
  const old = new Date(Date.now() - 60_000);
  const placeOf = (home: string, sha256: string): string =>
    path.join(home, 'blobs', sha256.slice(0, 2), sha256.slice(2, 4), sha256);
  const fresh = async () => {
    const home = path.join(folder, randomUUID());
    const { blobs } = openStores(home);
    const ref = await blobs.put('text');
    const file = placeOf(home, ref.sha256);
    await utimes(file, old, old);
    return { blobs, ref, file, erasure: erasureOf(blobs.erasure) };
  };

  test('a text that is stored again is not old any more', async () => {
    const { blobs, ref, erasure } = await fresh();
    const before = Date.now() - 30_000;
    expect((await erasure.list()).map(({ at }) => at < before)).toEqual([true]);
    await blobs.put('text');
    expect(await erasure.remove(ref, before)).toBe(false);
    expect(await blobs.get(ref)).toBe('text');
  });

  test('a removal that was killed between its steps loses nothing that is stored later', async () => {
    const { blobs, ref, file, erasure } = await fresh();
    await rename(file, `${file}.erasing`);
    await blobs.put('text');
    expect(await blobs.get(ref)).toBe('text');
    expect(await erasure.list()).toHaveLength(1);
    await rename(file, `${file}.erasing`);
    expect(await erasure.list()).toMatchObject([{ sha256: ref.sha256 }]);
    expect(await blobs.get(ref)).toBe('text');
  });

  test('what a killed writer has left of a text is removed with it', async () => {
    const { ref, file, erasure } = await fresh();
    const part = `${file}.${randomUUID()}.tmp`;
    await writeFile(part, 'te');
    await rm(file);
    expect(await erasure.list()).toMatchObject([{ sha256: ref.sha256 }]);
    expect(await erasure.remove(ref, ALWAYS)).toBe(true);
    expect(await readdir(path.dirname(file))).toEqual([]);
  });

  test('stored at the same time as they are removed are there afterwards', async () => {
    for (let round = 0; round < 40; round += 1) {
      const { blobs, ref, erasure } = await fresh();
      const [, isGone] = await Promise.all([
        blobs.put('text'),
        erasure.remove(ref, Date.now() - 30_000),
      ]);
      expect(await blobs.get(ref), `removed: ${isGone}`).toBe('text');
    }
  });
});

describe('references', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((digit) => digit.repeat(63) + '0');
  const stored = new Set([a ?? '', b ?? '', c ?? '']);

  test.each([
    ['', []],
    [`{"sha256":"${a}"}`, [a]],
    [`${a}${b}`, [a, b]],
    [`0f${a}77`, [a]],
    [`${(a ?? '').toUpperCase()} ${'d'.repeat(64)} ${(b ?? '').slice(1)}`, []],
  ])('are found in %j', (text, expected) => {
    expect([...namesIn(text, stored)]).toEqual(expected);
  });

  test('are followed through texts, encrypted ones too, and a missing one ends them', async () => {
    const objects = blobsIn(memoryObjects());
    const keys = keyringOf({ keys: { k1: Buffer.alloc(32).toString('base64') }, current: 'k1' });
    const blobs = sealedBlobs(objects, keys);
    const last = await blobs.put('last');
    const middle = await blobs.put(JSON.stringify({ blob: last }));
    const first = await blobs.put(JSON.stringify([{ blob: middle }, { sha256: a }]));
    const apart = await blobs.put('apart');
    const all = new Set([first, middle, last, apart].map(({ sha256 }) => sha256)).add(a ?? '');
    const found = await followNames(blobs, new Set([first.sha256]), all);
    expect(found).toEqual({
      names: new Set([first.sha256, middle.sha256, last.sha256, a]),
      unreadable: [],
    });
    const without = await followNames(sealedBlobs(objects, null), new Set([first.sha256]), all);
    expect(without.unreadable).toMatchObject([expect.stringContaining('encrypted with key "k1"')]);
  });
});
