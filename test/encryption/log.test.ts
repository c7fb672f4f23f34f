import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openClient } from '../../src/client/create-client.js';
import { KEYS_VARIABLE } from '../../src/encryption/keyring.js';
import { sourceBundle } from '../support/bundle.js';
import { NO_THREAD, childScript } from '../support/child-script.js';

const SCRIPT = new URL('../support/logging-worker.ts', import.meta.url);
const WORDS = { fail: 'cnry-thrown', note: 'cnry-noted', break: 'cnry-refused' } as const;

let home: string;
let bundle: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'perdure-log-'));
  bundle = join(home, 'bundle.js');
  const { code } = (await sourceBundle()) as { readonly code: string };
  await writeFile(bundle, code);
});
afterAll(async () => {
  await rm(home, { recursive: true, force: true });
});

/** Lets a worker process work, and returns its log. */
async function logOf(how: string, keys: Readonly<Record<string, string>>): Promise<string> {
  const address = inject('temporalAddress');
  const taskQueue = `log-${randomUUID()}`;
  const env = { PERDURE_HOME: home, ...keys };
  const own = { ADDRESS: address, QUEUE: taskQueue, BUNDLE: bundle, HOW: how };
  const child = spawn(process.execPath, [...childScript(SCRIPT)], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { PATH: process.env['PATH'], ...NO_THREAD, ...env, ...own },
  });
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('no pipes');
  const log = Promise.all([text(stdout), text(stderr)]);
  try {
    const [first] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
    expect(first).toBe('ready');
    const client = await openClient({ address, taskQueue, env });
    for (const [verb, word] of Object.entries(WORDS)) await client.run('clerk', `${verb} ${word}`);
    await client.disconnect();
    // What a logger has collected is written before the process ends.
    child.kill('SIGTERM');
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return (await log).join('');
}

const KEYS = { [KEYS_VARIABLE]: `k1:${randomBytes(32).toString('base64')}` };

test.each(['createWorker', 'own runtime', 'plugin'])(
  '%s: with a key, the log has nothing that tools and models say; without one, it has',
  async (how) => {
    const [hidden, shown] = await Promise.all([logOf(how, KEYS), logOf(how, {})]);
    const words = Object.values(WORDS);
    expect(words.filter((word) => shown.includes(word))).toEqual(words);
    expect(words.filter((word) => hidden.includes(word))).toEqual([]);
    expect(hidden).toContain('(encrypted)');
    // A program without a logger of its own gets what people should see.
    const isWhole = shown.includes('DRAINED');
    expect(isWhole).toBe(how !== 'createWorker');
    expect(shown).toContain('STOPPED');
  },
);
