import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeFolder } from '../../src/storage/files.js';

it('concurrent requests for a folder create it once', async () => {
  const root = await mkdtemp(join(tmpdir(), 'perdure-folder-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  for (let round = 0; round < 20; round += 1) {
    const folder = join(root, `${round}`, 'a', 'b', 'c');
    await Promise.all(Array.from({ length: 20 }, () => makeFolder(folder)));
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
  }
});

it('fails if the file system refuses to create folders', async () => {
  await expect(makeFolder('/proc/perdure/a')).rejects.toMatchObject({ code: 'ENOENT' });
});
