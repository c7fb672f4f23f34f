import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import {
  spawnDevServer,
  waitUntilReady,
  ownProcess,
  stopServer,
} from '../../src/server/dev-server.js';
import { ensureServer, findFreePort } from '../../src/server/ensure-server.js';
import type { ServerHandle } from '../../src/server/server-settings.js';
import { locateHome } from '../../src/server/server-home.js';
import { serverHomes } from '../support/server-homes.js';

const { freshHome } = serverHomes();

test('two folders that want the same port at the same time get one each', async () => {
  const defaultPort = await findFreePort(null);
  const homes = await Promise.all([freshHome(), freshHome()]);
  const [one, two] = await Promise.all(homes.map((home) => ensureServer({ home, defaultPort })));
  expect([one?.how, two?.how]).toEqual(['started', 'started']);
  expect(one?.address).not.toBe(two?.address);
  winner = one;
});

let winner: ServerHandle | undefined;

test("another folder's server is not mistaken for the one that lost the port", async () => {
  const home = await locateHome(await freshHome());
  const port = Number(winner?.address.split(':')[1]);
  const uiPort = await findFreePort(null);
  const cli = inject('temporalCli');
  const namespace = 'default';
  const pid = await spawnDevServer({ home, cli, port, uiPort, namespace, durability: 'normal' });
  const loser = waitUntilReady(home, { pid, port, uiPort, databaseFile: home.databaseFile });
  await expect(loser).rejects.toThrow(/ended before it was ready[^]*address already in use/);
});

/**
 * A Temporal CLI whose port is taken on its first start. Later it runs the real one as a child
 * process, as the wrappers of version managers do.
 */
const UNLUCKY = `#!/usr/bin/env node
const { spawn, spawnSync } = require('node:child_process');
const { existsSync, writeFileSync } = require('node:fs');
const arguments_ = process.argv.slice(2);
if (arguments_[0] === '--version' || existsSync(__filename + '.tried')) {
  process.exit(spawnSync(CLI, arguments_, { stdio: 'inherit' }).status);
}
writeFileSync(__filename + '.tried', '');
const listen = 'require("net").createServer().listen(' + arguments_[3] + ', "127.0.0.1", () => console.log("up"))';
const thief = spawn(process.execPath, ['-e', listen], { stdio: ['ignore', 'pipe', 'ignore'] });
writeFileSync(__filename + '.thief', String(thief.pid));
writeFileSync(__filename + '.thief', String(thief.pid));
thief.stdout.once('data', () => process.exit(1));
`;

test('a server that loses its port during its start is started on another one', async () => {
  const home = await freshHome();
  const path = join(home, 'temporal-unlucky.cjs');
  await writeFile(path, UNLUCKY.replace('CLI', JSON.stringify(inject('temporalCli'))));
  await chmod(path, 0o755);
  const env = { ...process.env, TEMPORAL_CLI_PATH: path };
  const server = await ensureServer({ home, adoptDefault: false, env });
  process.kill(Number(await readFile(`${path}.thief`, 'utf8')), 'SIGKILL');
  expect(server.how).toBe('started');
  expect(await stopServer(home)).toBe(true);
  expect(await ownProcess(await locateHome(home))).toBeNull();
});
