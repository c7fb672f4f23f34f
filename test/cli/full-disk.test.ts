import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { doctor } from '../../src/cli/commands/doctor.js';
import { run } from '../../src/cli/commands/run.js';
import { status } from '../../src/cli/commands/status.js';
import { ensureServer } from '../../src/server/ensure-server.js';
import { withConnection } from '../../src/server/namespace.js';
import { stopServer } from '../../src/server/dev-server.js';
import { runInProcess } from '../support/in-process.js';

const exec = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'perdure-small-'));
const home = join(folder, 'disk');
await mkdir(home);
/** A disk that is small enough to fill. Only root can mount one. */
const mounted = await exec('mount', ['-t', 'tmpfs', '-o', 'size=24m,mode=700', 'tmpfs', home]).then(
  () => true,
  (error: Error) => {
    process.stderr.write(`full-disk tests skipped: ${error.message}\n`);
    return false;
  },
);
const place = { home, env: { TEMPORAL_CLI_PATH: inject('temporalCli') } };

async function fill(): Promise<void> {
  const file = await open(join(home, 'fill'), 'w');
  const megabyte = Buffer.alloc(1024 * 1024);
  try {
    for (let written = 0; written < 32; written += 1) await file.write(megabyte);
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' });
  } finally {
    await file.close();
  }
}

beforeAll(async () => {
  if (!mounted) return;
  const { address } = await ensureServer({ home, adoptDefault: false });
  await withConnection(address, {}, async (connection) => {
    const input = {
      taskQueue: 'none',
      workflowId: 'waiting',
      args: [{ agent: 'a', message: 'm' }],
    };
    await new Client({ connection }).workflow.start('agent', input);
  });
  await fill();
});
afterAll(async () => {
  await stopServer(home);
  if (mounted) await exec('umount', ['--lazy', home]);
  await rm(folder, { recursive: true, force: true });
});

describe.runIf(mounted)('on a full disk', () => {
  test('status reports it, whether the server answers or not', async () => {
    const say = async (): Promise<string> =>
      await runInProcess(status, { id: 'waiting' }, place).then(
        ({ stderr }) => stderr,
        (error: Error) => `${error.name}: ${error.message}`,
      );
    // The server may exit at any moment, including during a query.
    await vi.waitFor(
      async () =>
        expect(await say()).toMatch(
          /^(?:NoServerError: )?(?:The server does not answer\. )?(?:The disk of|PERDURE_HOME) .* is full/,
        ),
      { timeout: 40_000, interval: 500 },
    );
  });

  test('doctor reports the disk and the other checks', async () => {
    const { code, stdout } = await runInProcess(doctor, { model: true }, place);
    expect(code).toBe(1);
    expect(stdout).toContain('; the disk is full (0 B left)');
    // On a full disk, the server may have exited.
    expect(stdout).toMatch(/embedded (?:one )?in/);
  });

  test('run is refused before anything is sent', async () => {
    const started = runInProcess(run, { agent: 'files', message: ['hi'], wait: true }, place);
    await expect(started).rejects.toThrow(
      `PERDURE_HOME ${home} cannot be written: the disk is full`,
    );
  });
});
