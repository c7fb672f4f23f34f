import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { processLife } from '../../src/server/processes.js';
import { withStartLock } from '../../src/server/ensure-server.js';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perdure-lock-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test('there is one holder at a time, even if several processes find a dead one', async () => {
  await writeFile(join(folder, '7'), '4194999@1');
  let inside = 0;
  let most = 0;
  const work = async (): Promise<void> => {
    inside += 1;
    most = Math.max(most, inside);
    for (let count = 0; count < 20; count += 1) await turn();
    inside -= 1;
  };
  await Promise.all(Array.from({ length: 12 }, () => withStartLock(folder, work)));
  expect(most).toBe(1);
  expect(await readdir(folder)).toEqual(['19']);
});

test('a reused pid does not hold the lock', async () => {
  await writeFile(join(folder, '1'), `${process.pid}@before`);
  expect(await withStartLock(folder, async () => 'mine')).toBe('mine');
});

test('a failure releases the lock', async () => {
  const failing = withStartLock(folder, () => Promise.reject(new Error('no disk')));
  await expect(failing).rejects.toThrow('no disk');
  expect(await withStartLock(folder, async () => 'mine')).toBe('mine');
});

test('a wait of a moment is not noted', async () => {
  const file = join(folder, '1');
  await writeFile(file, String(await processLife(process.ppid)));
  const waits: string[] = [];
  const waiting = withStartLock(folder, async () => 'mine', {
    onWait: async (pid) => void waits.push(pid),
  });
  setTimeout(() => void writeFile(file, 'released'), 200);
  expect(await waiting).toBe('mine');
  expect(waits).toEqual([]);
});

test('waiting ends with an error that names the holder and the fix', async () => {
  await writeFile(join(folder, '1'), String(await processLife(process.ppid)));
  const waits: string[] = [];
  const waiting = withStartLock(folder, async () => 'mine', {
    waitLimitMs: 1_500,
    onWait: async (pid) => void waits.push(pid),
  });
  await expect(waiting).rejects.toThrow(new RegExp(`Process ${process.ppid} .*delete the lock`));
  expect(waits).toEqual([String(process.ppid)]);
});
