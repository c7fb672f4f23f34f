import { randomUUID } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  liveWorkers,
  readLiveHosts,
  reachableUrl,
  announce,
  createWorkerFinder,
  type LiveWorker,
} from '../../src/live/live-workers.js';
import { portOf } from '../support/port-of.js';

/** The requests that the server got, with their tokens. */
const requests: string[] = [];
let server: Server;
let url: string;
let home: string;
const homes: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    requests.push(`${request.url} ${request.headers.authorization}`);
    response.writeHead(302, { location: 'http://127.0.0.1:9/elsewhere' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${portOf(server)}`;
});
beforeEach(async () => {
  requests.length = 0;
  home = await mkdtemp(join(tmpdir(), 'perdure-live-'));
  homes.push(home);
});
afterAll(async () => {
  server.close();
  await Promise.all(homes.map((each) => rm(each, { recursive: true })));
});

function worker(rest: Partial<LiveWorker> = {}): LiveWorker {
  const place = { namespace: 'n', taskQueue: 'q' };
  return { ...place, url, token: 'secret', pid: process.pid, host: hostname(), ...rest };
}

/** Writes a file as a worker does, except for `mode`. */
async function plant(content: unknown, { mode = 0o600, name = `1-${randomUUID()}.json` } = {}) {
  const file = join(home, 'live', name);
  await mkdir(join(home, 'live'), { recursive: true, mode: 0o700 });
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
  await chmod(file, mode);
  return file;
}

const found = async () => (await createWorkerFinder(home)()).map(({ file }) => file);

describe('the files of workers', () => {
  test('count as a worker writes them', async () => {
    const withdraw = await announce(home, worker());
    expect(await found()).toHaveLength(1);
    await withdraw();
    expect(await found()).toEqual([]);
  });

  test('are ignored if another user could have written them, or if they came with a repository', async () => {
    await plant(worker(), { mode: 0o644 });
    await plant(worker(), { mode: 0o620 });
    await symlink(
      await plant(worker(), { name: 'kept.json' }),
      join(home, `live/2-${randomUUID()}.json`),
    );
    if (process.getuid?.() === 0) await chown(await plant(worker()), 65_534, 65_534);
    expect(await found()).toEqual([]);
  });

  test('are ignored in a folder that is open to other users, or a link, until a worker makes it private', async () => {
    const file = await plant(worker());
    const folder = join(home, 'live');
    expect(await found()).toEqual([file]);
    await chmod(folder, 0o755);
    expect(await found()).toEqual([]);
    await announce(home, worker());
    expect(await found()).toHaveLength(2);
    await rename(folder, join(home, 'elsewhere'));
    await symlink(join(home, 'elsewhere'), folder);
    expect(await found()).toEqual([]);
    await expect(announce(home, worker())).rejects.toThrow('and no link; remove it');
  });

  test('may be malformed, long, or many', async () => {
    for (const text of ['', '{"url":', 'null', '[]', '{"url":"x"}', ' '.repeat(20_000)]) {
      await plant(text);
    }
    await plant({ ...worker(), pid: 0 });
    await plant({ ...worker(), pid: -1 });
    await plant({ ...worker(), pid: '1' });
    await plant({ ...worker(), token: 'a\r\nX-Injected: b' });
    await plant({ ...worker(), padding: 'x'.repeat(10_000) });
    await plant(worker(), { name: 'odd.json' });
    await mkdir(join(home, `live/1-${randomUUID()}.json`), { mode: 0o700 });
    expect(await found()).toEqual([]);
    for (let file = 0; file < 100; file += 1) await plant(worker());
    expect(await found()).toHaveLength(64);
  });
});

describe('the token of a worker', () => {
  const here = hostname();
  test.each<[string, Partial<LiveWorker>, string | null]>([
    ['this machine', { url: 'http://127.0.0.1:1' }, 'http://127.0.0.1:1'],
    ['this machine, by IPv6', { url: 'http://[::1]:1' }, 'http://[::1]:1'],
    ['this machine, by its name', { url: `http://${here}:1` }, 'http://127.0.0.1:1'],
    ['a machine in PERDURE_LIVE_HOSTS', { url: 'http://team:1', host: 'x' }, 'http://team:1'],
    ['another machine', { url: 'http://evil.example:1' }, null],
    ['another machine that says it is here', { url: 'http://10.1.2.3:1', host: here }, null],
    ['loopback of another machine', { url: 'http://127.0.0.1:1', host: 'x' }, null],
    ['a look-alike name', { url: 'http://127.0.0.1.evil.example:1' }, null],
    ['an address with a user name', { url: 'http://127.0.0.1@evil.example:1' }, null],
    ['this machine with a user name', { url: 'http://a:b@127.0.0.1:1' }, null],
    ['a path on this machine', { url: 'http://127.0.0.1:1/admin?x=' }, null],
    ['another protocol', { url: 'https://127.0.0.1:1' }, null],
    ['a file', { url: 'file:///etc/passwd' }, null],
  ])('is sent to %s only if allowed', (_, rest, expected) => {
    const hosts = readLiveHosts({ PERDURE_LIVE_HOSTS: ' Team, other ' });
    expect(reachableUrl(worker(rest), hosts)).toBe(expected);
    if (expected === 'http://team:1') expect(reachableUrl(worker(rest), [])).toBeNull();
  });

  test('is sent only to the worker that wrote the file, and not to the target of a redirect', async () => {
    await plant(worker({ host: 'elsewhere', token: 'one' }));
    await plant(worker({ token: 'two' }), { mode: 0o644 });
    await plant(worker({ taskQueue: 'another', token: 'three' }));
    await announce(home, worker({ token: 'four' }));
    const over = new AbortController();
    const answered = new Promise((resolve) => server.once('request', resolve));
    const run = { id: 'r', taskQueue: 'q', namespace: 'n' };
    liveWorkers(home)(run, {
      batch: () => undefined,
      unreachable: () => undefined,
      signal: over.signal,
    });
    await answered;
    over.abort();
    expect(new Set(requests)).toEqual(new Set(['/runs/r/deltas Bearer four']));
  });

  test.each<[string, readonly Partial<LiveWorker>[], RegExp]>([
    [
      'no worker is announced',
      [],
      /^replies of run r in progress are not shown .* no worker .* none runs now, or it has another PERDURE_HOME/,
    ],
    ['one of another task queue is', [{ taskQueue: 'another' }], /no worker of its task queue/],
    [
      'one on another machine is',
      [{ url: 'http://team:1', host: 'team' }],
      /its worker is on team; name that machine in PERDURE_LIVE_HOSTS/,
    ],
  ])('is explained once to a reader if %s', async (_what, workers, words) => {
    for (const one of workers) await announce(home, worker(one));
    const over = new AbortController();
    const notes: string[] = [];
    const noted = new Promise<void>((resolve) => {
      const unreachable = (why: string): void => {
        notes.push(why);
        resolve();
      };
      const run = { id: 'r', taskQueue: 'q', namespace: 'n' };
      liveWorkers(home)(run, {
        batch: () => undefined,
        unreachable,
        signal: over.signal,
      });
    });
    await noted;
    over.abort();
    expect(notes).toEqual([expect.stringMatching(words)]);
  });
});
