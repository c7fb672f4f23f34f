import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fileArchive } from '../../src/storage/file-stores.js';
import { archiveContract } from '../support/archive-contract.js';
import { archivedHistory, archivedRun as run } from '../support/archived.js';

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'perdure-archive-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

archiveContract('files', async () => fileArchive(path.join(await temporaryFolder(), 'archive')));

describe('the files of an archive', () => {
  it('have readable names if the ids are plain, and exclude those of writers that died', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    const history = archivedHistory(12);
    await archive.write(run, history, 'x');
    const inside = path.join(folder, 'default', 'order-17');
    const name = `001800000000012-000012-${history.firstRunId}-${history.runId}.json`;
    expect(await readdir(inside)).toEqual([name]);
    await writeFile(path.join(inside, `${name}.0b1c.tmp`), 'half');
    expect(await archive.list(run)).toEqual([history]);
  });

  it('are never outside the folder, and never those of another run', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    await archive.write({ ...run, id: 'A' }, archivedHistory(1), 'x');
    const [taken = ''] = await readdir(path.join(folder, run.namespace));
    expect(taken).toMatch(/^a-[0-9a-f]{64}$/);
    expect(await archive.list({ ...run, id: taken })).toEqual([]);
  });
});

describe('an error of the folder', () => {
  it('names the fix if a part of its path is a file', async () => {
    const file = path.join(await temporaryFolder(), 'file');
    await writeFile(file, '');
    const archive = fileArchive(file);
    const fix = 'a part of the path is a file: set PERDURE_HOME to a folder';
    await expect(archive.write(run, archivedHistory(1), 'x')).rejects.toMatchObject({
      kind: 'unwritable',
      message: expect.stringContaining(
        `the archive in ${file} cannot be written: ${fix}`,
      ) as string,
    });
    await expect(archive.list(run)).rejects.toMatchObject({
      kind: 'unreadable',
      message: `the archive in ${file} cannot be read: ${fix} (ENOTDIR)`,
    });
  });

  it.skipIf(process.platform !== 'linux')('names the folder if it is not writable', async () => {
    const archive = fileArchive('/sys/perdure-archive');
    await expect(archive.write(run, archivedHistory(1), 'x')).rejects.toMatchObject({
      kind: 'unwritable',
      message: expect.stringContaining('set PERDURE_HOME to a writable folder') as string,
    });
  });

  it('names the file if a folder is in its place', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    const history = archivedHistory(1);
    await archive.write(run, history, 'x');
    const [name = ''] = await readdir(path.join(folder, 'default', 'order-17'));
    const file = path.join(folder, 'default', 'order-17', name);
    await rm(file);
    await mkdir(file);
    await expect(archive.read(run, history)).rejects.toThrow('(EISDIR)');
  });
});
