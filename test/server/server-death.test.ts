import { spawn, type ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ensureServer } from '../../src/server/ensure-server.js';
import { ownerPid, type ServerHandle } from '../../src/server/server-settings.js';
import { processLife } from '../../src/server/processes.js';
import { serverHomes } from '../support/server-homes.js';

const { freshHome, command, client } = serverHomes();

async function killAndWait(pid: number | null): Promise<void> {
  if (pid === null) throw new Error('there is no server to kill');
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => processLife(pid), { interval: 10, timeout: 20_000 }).toBeNull();
}

// One folder through the deaths of its servers, as each start of a server takes seconds of CPU time.
const home = await freshHome();
let server: ServerHandle;

test('two commands that start at once on a fresh folder share one server', async () => {
  const [one, two] = await Promise.all([command(home), command(home)]);
  expect(one.handle.pid).toBe(two.handle.pid);
  expect(one.handle.address).toBe(two.handle.address);
  expect([one.handle.how, two.handle.how].toSorted()).toEqual(['adopted', 'started']);
  starters = one.handle.how === 'started' ? [one.child, two.child] : [two.child, one.child];
  server = one.handle;
});

/** The process that has started the first server, and the one that has adopted it. */
let starters: readonly ChildProcess[] = [];

test('the server outlives its starter, whose process group is killed, and is adopted by the next command', async () => {
  for (const starter of starters) {
    process.kill(-(starter.pid ?? 0), 'SIGKILL');
    // oxlint-disable-next-line no-await-in-loop -- the starter comes first
    await once(starter, 'exit');
  }
  const next = await ensureServer({ home, adoptDefault: false });
  expect(next).toEqual({ ...server, how: 'adopted', isNew: undefined });
});

test('a hanging server is waited for, and replaced when it is killed: on its file and ports, where clients find their runs', async () => {
  const { workflow } = await client(server.address);
  await workflow.start('anything', { taskQueue: 'nobody', workflowId: 'kept' });
  process.kill(server.pid ?? 0, 'SIGSTOP');
  const said = new EventEmitter();
  const line = once(said, 'line');
  const note = (text: string): unknown => said.emit('line', text);
  const waiting = ensureServer({ home, adoptDefault: false, note });
  expect(String(await line)).toContain(`process ${server.pid}`);
  await killAndWait(server.pid);
  const after = await waiting;
  expect(after).toEqual({ ...server, how: 'started', pid: after.pid });
  expect(after.pid).not.toBe(server.pid);
  const { status } = await workflow.getHandle('kept').describe();
  expect(status.name).toBe('RUNNING');
  server = after;
});

test('a server whose port is taken restarts on another port, with a note; the lock of a dead starter is taken over', async () => {
  const starter = spawn('sleep', ['60']);
  const life = await processLife(starter.pid ?? 0);
  expect(life).not.toBeNull();
  starter.kill('SIGKILL');
  await once(starter, 'exit');
  await killAndWait(server.pid);
  await mkdir(join(home, 'server.lock'), { recursive: true });
  await writeFile(join(home, 'server.lock', '99'), String(life));
  const thief = createServer();
  thief.on('error', () => undefined);
  await expect
    .poll(
      () => {
        thief.listen(Number(server.address.split(':')[1]), '127.0.0.1');
        return once(thief, 'listening').then(() => thief.listening);
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  const lines: string[] = [];
  const note = (line: string): unknown => lines.push(line);
  const env = { ...process.env, PERDURE_SERVER_OWNER_PID: String(owner.pid) };
  const after = await ensureServer({ home, adoptDefault: false, note, env });
  thief.close();
  expect(after.how).toBe('started');
  expect(after.address).not.toBe(server.address);
  expect(lines.join()).toContain('is taken');
  server = after;
});

const owner = spawn('sleep', ['60']);

test('a server with an owner outlives its starter, and ends soon after its owner was killed', async () => {
  const pid = server.pid ?? 0;
  expect(await processLife(pid)).not.toBeNull();
  owner.kill('SIGKILL');
  await expect.poll(() => processLife(pid), { interval: 50, timeout: 20_000 }).toBeNull();
});

test('the owner of a server can be named by an option or by a variable', () => {
  const env = { PERDURE_SERVER_OWNER_PID: '7' };
  expect(ownerPid({ home, env, ownerPid: 8 })).toBe(8);
  expect(ownerPid({ home, env })).toBe(7);
  expect(ownerPid({ home, env: {} })).toBeNull();
});
