import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readdir, rename, rmdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { withFileIn } from '../../../src/tools/files/open-file.js';
import { withFolders } from '../../../src/tools/files/confine.js';
import { yard, type Yard } from './support.js';

const ROUNDS = 150;
const SWAPPER = fileURLToPath(new URL('../../support/swap-folder.js', import.meta.url));

/** Creates a folder whose `sub` another process keeps replacing with a link that leads out. */
async function swappedYard(): Promise<Yard> {
  const place = await yard();
  await place.put({ 'sub/secret.txt': 'the public one\n', 'sub/deep/secret.txt': 'public too\n' });
  await mkdir(path.join(place.outside, 'deep'));
  await writeFile(path.join(place.outside, 'deep/secret.txt'), 'the secret below\n');
  const args = [SWAPPER, path.join(place.root, 'sub'), place.outside];
  const swapper = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    swapper.stdin.end();
    if (swapper.exitCode === null) await once(swapper, 'exit');
  });
  await once(swapper.stdout, 'data');
  return place;
}

/** Returns the results of the rounds with errors; a busy machine needs more rounds until one succeeds. */
async function rounds(
  act: (round: number) => Promise<string>,
  succeeded: (text: string) => boolean,
): Promise<string[]> {
  const seen: string[] = [];
  const isEnough = (): boolean =>
    seen.length >= ROUNDS && (seen.length >= 40 * ROUNDS || seen.some(succeeded));
  while (!isEnough()) {
    seen.push(await act(seen.length).catch((error: unknown) => String(error)));
  }
  return seen;
}

describe('a folder that is swapped for a link that leads out', () => {
  it.each([
    ['read_file', { path: 'sub/secret.txt' }],
    ['read_file', { path: 'sub/deep/secret.txt' }],
    ['search_text', { path: 'sub', query: 'the' }],
    ['list_files', { path: 'sub', depth: 2 }],
  ])('%s %j never shows what is outside', async (tool, input) => {
    const place = await swappedYard();
    await writeFile(path.join(place.outside, 'hidden.txt'), 'the secret\n');
    const shows = (text: string): boolean => text.includes('secret.txt');
    const seen = await rounds(() => place.call(tool, input), shows);
    expect(seen.filter((text) => /the secret|hidden/.test(text))).toEqual([]);
    // Otherwise the test would prove nothing.
    expect(seen.some(shows)).toBe(true);
  });

  it('write_file never writes, and creates no folder, outside', async () => {
    const place = await swappedYard();
    const wrote = (text: string): boolean => text.startsWith('wrote');
    const seen = await rounds(
      (round) =>
        place.call('write_file', { path: `sub/new${round % 7}/deeper/x.txt`, content: 'mine' }),
      wrote,
    );
    expect(seen.some(wrote)).toBe(true);
    expect((await readdir(place.outside)).toSorted()).toEqual(['deep', 'secret.txt']);
    expect(await readdir(path.join(place.outside, 'deep'))).toEqual(['secret.txt']);
  });
});

describe('on systems where a descriptor is not a path', () => {
  it('a folder that was replaced before its file was opened is detected', async () => {
    const place = await yard();
    await place.put({ 'sub/secret.txt': 'the public one\n' });
    const reading = withFolders(
      place.root,
      async (folders) => {
        await folders.open('sub');
        await rename(path.join(place.root, 'sub'), path.join(place.root, 'away'));
        await symlink(place.outside, path.join(place.root, 'sub'));
        const file = { requested: 'sub/secret.txt', relative: 'sub/secret.txt' };
        return await withFileIn(folders, file, (handle) => handle.readFile('utf8'));
      },
      null,
    );
    await expect(reading).rejects.toThrow(
      '"sub/secret.txt" is not a folder, or a part of its path is a file or a link',
    );
  });

  it('a file that was opened behind a link is not used when the folder is back', async () => {
    const place = await yard();
    await place.put({ 'sub/secret.txt': 'the public one\n' });
    const checking = withFolders(
      place.root,
      async (folders) => {
        const folder = await folders.open('sub');
        const elsewhere = await open(path.join(place.outside, 'secret.txt'));
        try {
          await folder.verify('secret.txt', await elsewhere.stat({ bigint: true }));
        } finally {
          await elsewhere.close();
        }
      },
      null,
    );
    await expect(checking).rejects.toThrow('EREPLACED');
  });

  it('everything else works the same', async () => {
    const place = await yard();
    await place.put({ 'a/b/c.txt': 'text\n' });
    await rmdir(place.outside).catch(() => undefined);
    const read = await withFolders(
      place.root,
      (folders) =>
        withFileIn(folders, { requested: 'c', relative: 'a/b/c.txt' }, (handle) =>
          handle.readFile('utf8'),
        ),
      null,
    );
    expect(read).toBe('text\n');
  });
});
