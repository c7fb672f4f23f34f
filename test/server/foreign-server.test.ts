import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { createServer as createHttpServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { ensureServer, findFreePort } from '../../src/server/ensure-server.js';
import { findServer } from '../../src/server/dev-server.js';
import { processLife } from '../../src/server/processes.js';
import { locateHome } from '../../src/server/server-home.js';
import type { ServerHandle } from '../../src/server/server-settings.js';
import { probeAddress } from '../../src/server/namespace.js';
import { portOf } from '../support/port-of.js';
import { serverHomes } from '../support/server-homes.js';
import { NoServerError } from '../../src/core/errors.js';

const { freshHome } = serverHomes();
let port = 0;
let foreign: ReturnType<typeof spawn> | undefined;

beforeAll(async () => {
  port = await findFreePort(null);
  const flags = ['--headless', '--ip', '127.0.0.1', '--port', String(port)];
  foreign = spawn(inject('temporalCli'), ['server', 'start-dev', ...flags], { stdio: 'ignore' });
  await vi.waitUntil(async () => (await probeAddress(`127.0.0.1:${port}`)).alive, {
    timeout: 30_000,
  });
});
afterAll(() => foreign?.kill('SIGKILL'));

test('a Temporal server at the default port is used, and nothing is started', async () => {
  const home = await freshHome();
  const server = await ensureServer({ home, defaultPort: port });
  expect(server).toMatchObject({ how: 'adopted', pid: null, address: `127.0.0.1:${port}` });
  expect(await readdir(home)).toEqual(['server.lock']);
  expect(await findServer({ home, defaultPort: port })).toEqual(server);
});

test('a command that waits for others beside a running server notes no start', async () => {
  const home = await freshHome();
  const notes: string[] = [];
  const ensure = () =>
    ensureServer({ home, defaultPort: port, note: (text) => void notes.push(text) });
  await ensure();
  const { lockFolder } = await locateHome(home);
  const lock = join(lockFolder, '9');
  await writeFile(lock, String(await processLife(process.ppid)));
  const waiting = ensure();
  setTimeout(() => void writeFile(lock, 'released'), 2_500);
  expect((await waiting).how).toBe('adopted');
  expect(notes).toEqual([]);
});

/** The server of another folder than that of the test. */
let own: ServerHandle;

test('PERDURE_SERVER=own does not use the default port', async () => {
  const home = await freshHome();
  const env = { ...process.env, PERDURE_SERVER: 'own' };
  own = await ensureServer({ home, defaultPort: port, env });
  expect(own.how).toBe('started');
  expect(own.address).not.toBe(`127.0.0.1:${port}`);
});

test('a folder with its own runs uses its own server', async () => {
  process.kill(own.pid ?? 0, 'SIGKILL');
  const server = await ensureServer({ home: own.home, defaultPort: port });
  expect(server).toMatchObject({ how: 'started', address: own.address });
});

test('the embedded server of another folder is not used at the default port', async () => {
  const defaultPort = Number(own.address.split(':')[1]);
  expect(await findServer({ home: await freshHome(), defaultPort })).toBeNull();
});

test('a server is started if the default port is open without gRPC', async () => {
  const web = createHttpServer((_request, response) => response.end('hello'));
  web.listen(0, '127.0.0.1');
  await once(web, 'listening');
  const webPort = portOf(web);
  expect(await probeAddress(`127.0.0.1:${webPort}`, { timeoutMs: 500 })).toMatchObject({
    alive: false,
  });
  const home = await freshHome();
  expect(await findServer({ home, defaultPort: webPort })).toBeNull();
  const server = await ensureServer({ home, defaultPort: webPort });
  expect(server.how).toBe('started');
  expect(server.address).not.toBe(`127.0.0.1:${webPort}`);
  web.close();
});

test('a named address is used as it is', async () => {
  const home = await freshHome();
  const address = `127.0.0.1:${port}`;
  const server = await ensureServer({ home, address });
  expect(server).toMatchObject({ how: 'address', address, pid: null });
  expect(await findServer({ home, address })).toEqual(server);
});

test('a named address that does not answer is an error with the fix; nothing is started', async () => {
  const home = await freshHome();
  const unused = createServer().listen(0, '127.0.0.1');
  await once(unused, 'listening');
  const address = `127.0.0.1:${portOf(unused)}`;
  unused.close();
  await once(unused, 'close');
  const failure = ensureServer({ home, address });
  await expect(failure).rejects.toThrow(NoServerError);
  await expect(failure).rejects.toThrow(`${address} (nothing listens there)`);
  await expect(failure).rejects.toThrow('TEMPORAL_ADDRESS');
  expect(await readdir(home)).toEqual([]);
});

test('a missing namespace on the named server is an error with the command that creates it', async () => {
  const failure = ensureServer({
    home: await freshHome(),
    address: `127.0.0.1:${port}`,
    namespace: 'nowhere',
  });
  await expect(failure).rejects.toThrow('temporal operator namespace create -n nowhere');
});
