import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, lstat, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { ensureServer } from '../../src/server/ensure-server.js';
import { listenerAt, serverProcesses } from '../../src/server/processes.js';
import { findServer } from '../../src/server/dev-server.js';
import { assertWritable, locateHome, prepareHome } from '../../src/server/server-home.js';
import { writeRecord } from '../../src/server/server-settings.js';
import { mayBeOther, NOBODY, proxyOfOther } from '../support/other-user.js';
import { portOf } from '../support/port-of.js';
import { serverHomes } from '../support/server-homes.js';

const { freshHome } = serverHomes();
const shared = Number(inject('temporalAddress').split(':')[1]);
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

async function proxy(...given: Parameters<typeof proxyOfOther>): Promise<number> {
  const { port, child } = await proxyOfOther(...given);
  children.push(child);
  return port;
}

const modeOf = async (path: string): Promise<number> => (await lstat(path)).mode & 0o777;

describe('a listener at a port is identified by its user', () => {
  // Without a host it listens on all addresses, including IPv6 if available.
  test.each(['127.0.0.1', '0.0.0.0', undefined])('at %s', async (host) => {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    expect((await listenerAt(portOf(server)))?.uid).toBe(process.getuid?.());
  });

  test('without a listener', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const port = portOf(server);
    server.close();
    await once(server, 'close');
    expect(await listenerAt(port)).toBeNull();
  });
});

describe.runIf(mayBeOther)('a server of another user', () => {
  test('is not used at the default port, and a note says so', async () => {
    const defaultPort = await proxy(shared);
    expect((await listenerAt(defaultPort))?.uid).toBe(NOBODY);
    const home = await freshHome();
    const notes: string[] = [];
    const note = (line: string): void => void notes.push(line);
    expect(await findServer({ home, defaultPort, note })).toBeNull();
    expect(notes).toEqual([
      `The server at 127.0.0.1:${defaultPort} belongs to user ${NOBODY}, not to you and is not used. ` +
        `To use it anyway, set TEMPORAL_ADDRESS=127.0.0.1:${defaultPort}`,
    ]);
    const named = await ensureServer({ home, address: `127.0.0.1:${defaultPort}` });
    expect(named.how).toBe('address');
  });

  test('is not adopted with a forged command line and a planted record', async () => {
    const folder = await freshHome();
    const home = await locateHome(folder);
    await writeFile(home.databaseFile, 'state');
    const words = `server start-dev --port 28999 --ui-port 28998 --db-filename ${home.databaseFile} --ip 127.0.0.1`;
    const { child } = await proxyOfOther(shared, { port: 28_999, words: words.split(' ') });
    children.push(child);
    const record = { version: '1.32.0', createdBy: '1.32.0', startedAt: null };
    await writeRecord(home.recordFile, {
      ...record,
      pid: child.pid ?? null,
      port: 28_999,
      uiPort: 28_998,
    });
    expect((await serverProcesses()).map(({ port }) => port)).not.toContain(28_999);
    expect(await findServer({ home: folder, adoptDefault: false })).toBeNull();
  });
});

describe('PERDURE_HOME', () => {
  test('is private, including all files of a server, whatever the umask', async () => {
    const home = await freshHome();
    const before = process.umask(0);
    onTestFinished(() => void process.umask(before));
    await chmod(home, 0o755);
    await ensureServer({ home, adoptDefault: false });
    const names = await readdir(home);
    expect(names).toEqual(expect.arrayContaining(['temporal.db', 'temporal.db-wal', 'server.log']));
    const open = await Promise.all(
      ['.', ...names].map(async (name) => [name, (await modeOf(join(home, name))) & 0o077]),
    );
    expect(open.filter(([, mode]) => mode !== 0)).toEqual([]);
  });

  test('that existed and was open is made private, except for foreign files', async () => {
    const home = await freshHome();
    await mkdir(join(home, 'blobs', 'ab'), { recursive: true });
    await writeFile(join(home, 'blobs', 'ab', 'abcd'), 'said');
    await writeFile(join(home, 'server.log'), '');
    await writeFile(join(home, 'notes.txt'), '', { mode: 0o644 });
    await chmod(home, 0o777);
    const notes: string[] = [];
    await prepareHome(home, { note: (line) => notes.push(line) });
    const modes = ['.', 'blobs', 'blobs/ab', 'blobs/ab/abcd', 'server.log', 'notes.txt'].map(
      (name) => modeOf(join(home, name)),
    );
    expect(await Promise.all(modes)).toEqual([0o700, 0o700, 0o700, 0o600, 0o600, 0o644]);
    expect(notes.join()).toContain(`${home}, ${join(home, 'blobs')}`);
    notes.length = 0;
    await prepareHome(home, { note: (line) => notes.push(line) });
    expect(notes).toEqual([]);
  });

  test('is refused if a link replaces one of its folders', async () => {
    const home = await freshHome();
    await symlink(await freshHome(), join(home, 'blobs'));
    await expect(prepareHome(home)).rejects.toThrow(`${join(home, 'blobs')} is a symbolic link`);
  });

  test('may be a link to a private folder, and is never made private through a link', async () => {
    const [real, place] = [await freshHome(), await freshHome()];
    const link = join(place, 'link');
    await symlink(real, link);
    await prepareHome(link);
    await chmod(real, 0o755);
    await expect(prepareHome(link)).rejects.toThrow(`chmod 700 ${real}`);
    expect(await modeOf(real)).toBe(0o755);
  });

  test.runIf(mayBeOther)(
    'of another user is refused for a server, and noted for a worker',
    async () => {
      const home = await freshHome();
      await chown(home, NOBODY, NOBODY);
      await expect(prepareHome(home)).rejects.toThrow(
        `${home} belongs to user ${NOBODY}, not to you`,
      );
      const notes: string[] = [];
      await prepareHome(home, { embedded: false, note: (line) => notes.push(line) });
      expect(notes.join()).toContain(`belongs to user ${NOBODY}`);
    },
  );

  test('that is a file or cannot be written to is refused before anything starts', async () => {
    const file = join(await freshHome(), 'file');
    await writeFile(file, '');
    await expect(prepareHome(file)).rejects.toThrow('a part of the path is a file');
    await expect(prepareHome(join(file, 'home'))).rejects.toThrow('a part of the path is a file');
    await expect(prepareHome('/proc/perdure')).rejects.toThrow('PERDURE_HOME /proc/perdure cannot');
    await expect(assertWritable({ folder: '/proc' })).rejects.toThrow('/proc cannot be written');
  });
});
