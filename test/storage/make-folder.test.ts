import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeFolder } from '../../src/storage/make-folder.js';

it('makes one folder for all that ask at the same time', async () => {
  const root = await mkdtemp(join(tmpdir(), 'perdure-folder-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  for (let round = 0; round < 20; round += 1) {
    const folder = join(root, `${round}`, 'a', 'b', 'c');
    await Promise.all(Array.from({ length: 20 }, () => makeFolder(folder)));
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
  }
});

it('gives up where a file system takes no folders', async () => {
  await expect(makeFolder('/proc/perdure/a')).rejects.toMatchObject({ code: 'ENOENT' });
});
