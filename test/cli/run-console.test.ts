import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { laterConsole } from '../../src/cli/reports/run-pages.js';
import { builtProgram } from '../support/built-program.js';
import { NO_THREAD } from '../support/child-script.js';
import { commandLine } from '../support/command.js';
import { openLocked, startChromium } from '../support/console-pages.js';
import { serverHomes } from '../support/server-homes.js';

const command = await commandLine();
const homes = serverHomes();
const LINK = /Console, while this command runs: (http:\/\/127\.0\.0\.1:\d+)\/#(\/run\/\S+)/;
const LATER = /See it in the console with: .* serve/;
let browser: Browser | null;

beforeAll(async () => {
  browser = await startChromium();
});
afterAll(async () => await browser?.close());

/** An agent that replies once there is the file `go`. */
const CONFIG = `import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineAgent, defineConfig } from 'perdure';
const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
const model = {
  async call(_, { signal }) {
    while (!existsSync('go')) await sleep(50, undefined, { signal });
    return { text: 'went', calls: [], finish: 'stop', usage };
  },
};
export default defineConfig({
  agents: [defineAgent({ name: 'held', instructions: 'x', model: 'm' })],
  models: { m: model },
});
`;

/** The command in a pseudo-terminal, without a server that the user has named. */
async function atTerminal(words: readonly string[], home: string) {
  const program = [process.execPath, await builtProgram(), ...words].join(' ');
  const terminal = spawn('script', ['-qefc', program, '/dev/null'], {
    cwd: command.folder,
    env: {
      ...NO_THREAD,
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      PERDURE_HOME: home,
      PERDURE_SERVER: 'own',
      TERM: 'xterm',
      NO_COLOR: '1',
    },
  });
  const exited = once(terminal, 'exit');
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
  return { shown: () => shown, exited };
}

test('a run on the embedded server has a page while its command runs', async (context) => {
  const home = await homes.freshHome();
  await writeFile(join(command.folder, 'perdure.config.ts'), CONFIG);
  const running = await atTerminal(['run', 'held', 'hello', '--id', 'mine'], home);
  const [, url = '', hash = ''] = await vi.waitFor(
    () => LINK.exec(running.shown()) ?? expect.unreachable(running.shown()),
    { timeout: 60_000, interval: 50 },
  );
  expect(hash).toBe('/run/mine');
  const { page, faults } = await openLocked(context, { browser, url, hash });
  await page.locator('.step.user', { hasText: 'hello' }).waitFor();
  await writeFile(join(command.folder, 'go'), '');
  await page.locator('.answer', { hasText: 'went' }).waitFor();
  const [code] = await running.exited;
  expect(code).toBe(0);
  expect(running.shown()).toMatch(LATER);
  await expect(fetch(url)).rejects.toThrow('fetch failed');
  expect(faults).toEqual([]);
  await page.close();
});

test('a command of a configuration without the agent of the run names a console without a worker', async () => {
  const env = { PERDURE_HOME: await homes.freshHome(), PERDURE_SERVER: 'own' };
  await rm(join(command.folder, 'go'), { force: true });
  await writeFile(join(command.folder, 'perdure.config.ts'), CONFIG);
  const running = command.start(['run', 'held', 'hello', '--id', 'theirs'], { env });
  await running.prints('model m');
  const attached = command.start(['attach', 'theirs', '--no-config'], { env });
  await attached.prints('Console, while this command runs');
  await writeFile(join(command.folder, 'go'), '');
  const { stderr } = await attached.ended;
  expect(stderr).toMatch(
    /See it in the console with: .* serve (--port 0 )?--no-worker --no-config$/m,
  );
  expect((await running.ended).stderr).toMatch(
    /See it in the console with: .* serve( --port 0)?$/m,
  );
});

test('where a console already shows the run, that one is named; where another program listens, another port', async () => {
  const env = { PERDURE_HOME: await homes.freshHome(), PERDURE_SERVER: 'own' };
  const own = ['--no-config'];
  await command.start(['run', 'files', 'hello', '--id', 'seen', ...own], { env }).ended;
  const serving = command.start(['serve', '--no-worker', '--port', '0', ...own], { env });
  await serving.prints('serving http://');
  const [, port = ''] = /serving http:\/\/127\.0\.0\.1:(\d+)/.exec(serving.stderr()) ?? [];
  const place = { options: {}, env: {} };
  const run = { id: 'seen', lack: null };
  // A console of another home may show another run with the same id.
  const none = { announced: [], port: Number(port) };
  for (const id of ['seen', 'unseen']) {
    expect(await laterConsole(place, { ...run, id }, none)).toMatch(/with: .* serve --port 0$/);
  }
  // It is found at its own port, by another command with the same home.
  const again = ['run', 'files', 'hello', '--id', 'again', ...own];
  expect((await command.start(again, { env }).ended).stderr).toContain(
    `See it in the console: http://127.0.0.1:${port}/#/run/again`,
  );
  serving.child.kill('SIGTERM');
  await serving.ended;
  expect(await laterConsole(place, run, none)).toMatch(/with: .* serve$/);
  expect(
    (await command.start([...again.slice(0, -2), 'last', ...own], { env }).ended).stderr,
  ).toMatch(LATER);
});

test('a console with keys at another port is named for its server, without a look at its runs', async () => {
  const env = { PERDURE_HOME: await homes.freshHome(), PERDURE_SERVER: 'own' };
  const own = ['--no-config'];
  await command.start(['run', 'files', 'hello', '--id', 'first', ...own], { env }).ended;
  const serving = command.start(['serve', '--no-worker', '--port', '0', ...own], {
    env: { ...env, PERDURE_SERVE_KEYS: 'ann:0123456789abcdef0123456789abcdef' },
  });
  await serving.prints('serving http://');
  const [, port = ''] = /serving http:\/\/127\.0\.0\.1:(\d+)/.exec(serving.stderr()) ?? [];
  const run = ['run', 'files', 'hello', '--id', 'second', ...own];
  const link = `See it in the console: http://127.0.0.1:${port}/#/run/second`;
  expect((await command.start(run, { env }).ended).stderr).toContain(link);
  // A process that was killed withdraws nothing.
  serving.child.kill('SIGKILL');
  await serving.ended;
  const killed = ['run', 'files', 'hello', '--id', 'third', ...own];
  expect((await command.start(killed, { env }).ended).stderr).toMatch(LATER);
});

test('a command whose output is JSON serves no page', async () => {
  const home = await homes.freshHome();
  const env = { PERDURE_HOME: home, PERDURE_SERVER: 'own' };
  const words = ['run', 'files', 'hello', '--json', '--no-config'];
  const { code, stderr } = await command.start(words, { env }).ended;
  expect(code).toBe(0);
  expect(stderr).not.toContain('onsole');
});
