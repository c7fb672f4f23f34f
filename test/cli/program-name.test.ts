import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { builtProgram } from '../support/built-program.js';

let folder: string;
let program: string;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'perdure-name-')));
  const bin = join(folder, 'project', 'node_modules', '.bin');
  await Promise.all([mkdir(bin, { recursive: true }), mkdir(join(folder, 'other'))]);
  program = join(bin, 'perdure');
  await symlink(await builtProgram(), program);
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

/** Returns what the installed program writes to stderr in a folder. */
async function stderrOf(
  args: readonly string[],
  { cwd, env = {} }: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Promise<string> {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: join(folder, cwd),
    env: {
      PATH: process.env['PATH'] ?? '',
      PERDURE_HOME: join(folder, 'home'),
      PERDURE_SERVER: 'own',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return stderr;
}

const DETACHED = ['run', 'files', 'hi', '--detach', '--no-config'];
const MISNAMED = ['resolve', 'x', 'r1', '--as', 'raise'];

test('a program that was called by its path from another folder prints commands with the path', async () => {
  expect(await stderrOf(DETACHED, { cwd: 'other' })).toContain(
    `start one with: ${program} worker --no-config`,
  );
  // A reader elsewhere is in no folder of the project.
  const env = { PERDURE_HINTS: 'full' };
  expect(await stderrOf(DETACHED, { cwd: 'project', env })).toContain(` ${program} worker`);
  expect(await stderrOf(MISNAMED, { cwd: 'other' })).toContain(`with: ${program} limits x`);
});

test('a program that a package manager finds is printed as it is called there', async () => {
  const npx = 'start one with: npx perdure worker --no-config';
  expect(await stderrOf(DETACHED, { cwd: 'project' })).toContain(npx);
  // As npx does, also for a package that it has just downloaded.
  const env = { npm_config_user_agent: 'npm/11.0.0 node/v24.0.0' };
  expect(await stderrOf(DETACHED, { cwd: 'other', env })).toContain(npx);
});
