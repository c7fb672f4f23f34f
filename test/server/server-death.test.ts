import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ensureServer } from '../../src/server/ensure-server.js';
import { processLife } from '../../src/server/process-table.js';
import { serverHomes } from '../support/server-homes.js';

const { freshHome, command, client } = serverHomes();

async function killAndWait(pid: number | null): Promise<void> {
  if (pid === null) throw new Error('there is no server to kill');
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => processLife(pid), { interval: 10, timeout: 20_000 }).toBeNull();
}

test('two commands that start at once on a fresh folder share one server', async () => {
  const home = await freshHome();
  const [one, two] = await Promise.all([command(home), command(home)]);
  expect(one.handle.pid).toBe(two.handle.pid);
  expect(one.handle.address).toBe(two.handle.address);
  expect([one.handle.how, two.handle.how].toSorted()).toEqual(['adopted', 'started']);
});

test("the server survives the kill of its starter's process group, and the next command adopts it", async () => {
  const home = await freshHome();
  const starter = await command(home);
  process.kill(-(starter.child.pid ?? 0), 'SIGKILL');
  await once(starter.child, 'exit');
  const next = await ensureServer({ home, adoptDefault: false });
  expect(next).toEqual({ ...starter.handle, how: 'adopted' });
});

test('a killed server restarts on its file and ports, and clients find their runs', async () => {
  const home = await freshHome();
  const before = await ensureServer({ home, adoptDefault: false });
  const { workflow } = await client(before.address);
  await workflow.start('anything', { taskQueue: 'nobody', workflowId: 'kept' });
  await killAndWait(before.pid);
  const after = await ensureServer({ home, adoptDefault: false });
  expect(after).toEqual({ ...before, how: 'started', pid: after.pid });
  expect(after.pid).not.toBe(before.pid);
  const { status } = await workflow.getHandle('kept').describe();
  expect(status.name).toBe('RUNNING');
});

test('a server whose port is taken restarts on another port, with a note', async () => {
  const home = await freshHome();
  const before = await ensureServer({ home, adoptDefault: false });
  await killAndWait(before.pid);
  const thief = createServer();
  thief.on('error', () => undefined);
  await expect
    .poll(
      () => {
        thief.listen(Number(before.address.split(':')[1]), '127.0.0.1');
        return once(thief, 'listening').then(() => thief.listening);
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  const lines: string[] = [];
  const note = (line: string): unknown => lines.push(line);
  const after = await ensureServer({ home, adoptDefault: false, note });
  thief.close();
  expect(after.how).toBe('started');
  expect(after.address).not.toBe(before.address);
  expect(lines.join()).toContain('is taken');
});

test('a hanging server is waited for, and replaced once it is killed', async () => {
  const home = await freshHome();
  const before = await ensureServer({ home, adoptDefault: false });
  process.kill(before.pid ?? 0, 'SIGSTOP');
  const notes = new EventEmitter();
  const line = once(notes, 'line');
  const note = (text: string): unknown => notes.emit('line', text);
  const waiting = ensureServer({ home, adoptDefault: false, note });
  expect(String(await line)).toContain(`process ${before.pid}`);
  await killAndWait(before.pid);
  expect(await waiting).toMatchObject({ how: 'started', address: before.address });
});

test('the lock of a dead starter is taken over', async () => {
  const home = await freshHome();
  const dead = await command(home);
  await killAndWait(dead.handle.pid);
  const life = await processLife(dead.child.pid ?? 0);
  dead.child.kill('SIGKILL');
  await once(dead.child, 'exit');
  await mkdir(join(home, 'server.lock'), { recursive: true });
  await writeFile(join(home, 'server.lock', '99'), String(life));
  expect(await ensureServer({ home, adoptDefault: false })).toMatchObject({ how: 'started' });
});

test('a server with an owner outlives its starter, and ends soon after its owner is killed', async () => {
  const home = await freshHome();
  const owner = spawn('sleep', ['60']);
  const { pid } = await ensureServer({ home, adoptDefault: false, ownerPid: owner.pid ?? 0 });
  expect(await processLife(pid ?? 0)).not.toBeNull();
  owner.kill('SIGKILL');
  await expect.poll(() => processLife(pid ?? 0), { interval: 50, timeout: 20_000 }).toBeNull();
});

test('the owner of a server can be set by an environment variable', async () => {
  const home = await freshHome();
  const owner = spawn('sleep', ['60']);
  const env = { ...process.env, PERDURE_SERVER_OWNER_PID: String(owner.pid) };
  const { pid } = await ensureServer({ home, adoptDefault: false, env });
  owner.kill('SIGKILL');
  await expect.poll(() => processLife(pid ?? 0), { interval: 50, timeout: 20_000 }).toBeNull();
});
