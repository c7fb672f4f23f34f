import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BlobError } from '../../src/storage/blob-store.js';
import { fileBlobStore } from '../../src/storage/file-stores.js';
import { anyString } from '../support/any-string.js';

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'perdure-blobs-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function placeOf(folder: string, sha256: string): string {
  return path.join(folder, sha256.slice(0, 2), sha256.slice(2, 4), sha256);
}

async function failureOf(promise: Promise<unknown>): Promise<BlobError> {
  const error: unknown = await promise.then(
    () => new Error('it did not fail'),
    (thrown: unknown) => thrown,
  );
  if (error instanceof BlobError) return error;
  throw error;
}

describe('fileBlobStore', () => {
  it('returns what was stored, named by the hash of its bytes', async () => {
    const folder = await temporaryFolder();
    const store = fileBlobStore(folder);
    const text = 'grüße 🙂\r\n\0';
    const ref = await store.put(text);
    const sha256 = createHash('sha256').update(text).digest('hex');
    expect(ref).toEqual({ sha256, bytes: Buffer.byteLength(text) });
    expect(await store.get(ref)).toBe(text);
    expect(await fileBlobStore(folder).get({ sha256 })).toBe(text);
    expect(await readFile(placeOf(folder, sha256), 'utf8')).toBe(text);
  });

  it('returns any text unchanged', async () => {
    const store = fileBlobStore(await temporaryFolder());
    await fc.assert(
      fc.asyncProperty(anyString(), async (text) => {
        expect(await store.get(await store.put(text))).toBe(text);
      }),
      { numRuns: 50 },
    );
  });

  it('stores the same text once, even with many concurrent writers', async () => {
    const folder = await temporaryFolder();
    const stores = Array.from({ length: 20 }, () => fileBlobStore(folder));
    const refs = await Promise.all(stores.map((store) => store.put('same')));
    expect(new Set(refs.map(({ sha256 }) => sha256)).size).toBe(1);
    const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter(
      (entry) => entry.isFile(),
    );
    expect(files.map(({ name }) => name)).toEqual([refs[0]?.sha256]);
  });

  it('detects a damaged file, and repairs it with the next put of its text', async () => {
    const folder = await temporaryFolder();
    const store = fileBlobStore(folder);
    const ref = await store.put('the truth');
    await writeFile(placeOf(folder, ref.sha256), 'the tru');
    const error = await failureOf(store.get(ref));
    expect(error.kind).toBe('damaged');
    expect(error.message).toContain(`blob ${ref.sha256} in ${folder} is damaged (7 bytes with`);
    await store.put('the truth');
    expect(await store.get(ref)).toBe('the truth');
  });

  it('names the reference, the folder, and the fix if a text is missing', async () => {
    const folder = await temporaryFolder();
    const sha256 = 'ab'.repeat(32);
    const error = await failureOf(fileBlobStore(folder).get({ sha256 }));
    expect(error.kind).toBe('missing');
    expect(error.message).toBe(
      `blob ${sha256} is missing from ${folder}; restore it from a backup, or let all workers use the PERDURE_HOME/blobs that has it`,
    );
  });

  it('distinguishes a missing store, or a file in its place, from a missing text', async () => {
    const folder = await temporaryFolder();
    const sha256 = 'ab'.repeat(32);
    const gone = await failureOf(fileBlobStore(path.join(folder, 'gone')).get({ sha256 }));
    expect(gone.kind).toBe('unreadable');
    expect(gone.message).toContain('it does not exist: mount it');
    await writeFile(path.join(folder, 'file'), '');
    const blocked = await failureOf(fileBlobStore(path.join(folder, 'file')).get({ sha256 }));
    expect(blocked.kind).toBe('unreadable');
    expect(blocked.message).toContain('a part of the path is a file');
  });

  it('is accessible to its owner only, whatever the umask', async () => {
    const folder = path.join(await temporaryFolder(), 'blobs');
    const before = process.umask(0);
    onTestFinished(() => void process.umask(before));
    const { sha256 } = await fileBlobStore(folder).put('mine');
    const file = placeOf(folder, sha256);
    const modes = [folder, path.dirname(file), file].map(async (each) => (await stat(each)).mode);
    expect((await Promise.all(modes)).map((mode) => mode & 0o777)).toEqual([0o700, 0o700, 0o600]);
  });

  it.each([
    '../../../etc/passwd',
    '',
    'AB'.repeat(32),
    `${'a'.repeat(64)}/x`,
    `${'a'.repeat(63)}\n`,
  ])('refuses %j as a reference before it touches a path', async (sha256) => {
    const error = await failureOf(fileBlobStore('/nowhere').get({ sha256 }));
    expect(error.kind).toBe('invalid');
    expect(error.message).toContain('64 lowercase hex digits');
  });

  it('names the folder if a part of its path is a file', async () => {
    const file = path.join(await temporaryFolder(), 'file');
    await writeFile(file, '');
    const error = await failureOf(fileBlobStore(path.join(file, 'blobs')).put('x'));
    expect(error.kind).toBe('unwritable');
    expect(error.message).toContain(path.join(file, 'blobs'));
    expect(error.message).toContain('set PERDURE_HOME to a folder');
  });

  it.skipIf(process.platform !== 'linux')('names a folder that may not be written to', async () => {
    const error = await failureOf(fileBlobStore('/sys/perdure-blobs').put('x'));
    expect(error.kind).toBe('unwritable');
    expect(error.message).toContain('/sys/perdure-blobs');
    expect(error.message).toContain('set PERDURE_HOME to a writable folder');
  });

  it('reports that a blob is unreadable if something else is in its place', async () => {
    const folder = await temporaryFolder();
    const text = 'blocked';
    const sha256 = createHash('sha256').update(text).digest('hex');
    await mkdir(path.join(placeOf(folder, sha256), 'inside'), { recursive: true });
    const error = await failureOf(fileBlobStore(folder).put(text));
    expect(error.kind).toBe('unreadable');
    expect(await readdir(path.dirname(placeOf(folder, sha256)))).toEqual([sha256]);
  });
});
