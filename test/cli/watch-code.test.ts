import { once } from 'node:events';
import { watch } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { watchCode } from '../../src/cli/hosting/dev-process.js';

test('a watch of code ignores a PERDURE_HOME inside the project', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-watch-'));
  const home = join(folder, 'state');
  await mkdir(join(home, 'live'), { recursive: true });
  const changed = new Promise<string>((resolve) => {
    const end = watchCode({ folder, deep: true, except: home }, resolve);
    onTestFinished(() => void end());
  });
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'code.ts'), '');
  // The watch reports the last change before a pause.
  await writeFile(join(home, 'live', 'worker.json'), '{}');
  expect(await changed).toBe(join(folder, 'code.ts'));
});

test('a watch that ends reports the change that is still pending', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-watch-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const reported: string[] = [];
  const quiet = watchCode({ folder, deep: false }, (path) => reported.push(path));
  const end = watchCode({ folder, deep: false }, (path) => reported.push(path));
  // Node notifies the watches of a folder in the order in which they began.
  const seen = watch(folder);
  onTestFinished(() => seen.close());
  expect(quiet()).toBeNull();
  const change = once(seen, 'change');
  await writeFile(join(folder, 'code.ts'), '');
  await change;
  expect(end()).toBe(join(folder, 'code.ts'));
  expect(reported).toEqual([]);
});
