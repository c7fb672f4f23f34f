import { text } from 'node:stream/consumers';
import { startTestServer } from '../../src/testing.js';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { childScript } from '../support/child-script.js';

const WORKER = new URL('../support/test-worker-process.ts', import.meta.url);
const SCRIPT = new URL('../support/test-server-process.ts', import.meta.url);

// Vitest waits ten seconds for a global setup that keeps its process alive.
test('a process that has closed its server for tests ends by itself', async () => {
  const child = spawn(process.execPath, childScript(SCRIPT), {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('a worker in the home of a server for tests logs only what is wrong, one line each', async () => {
  await using server = await startTestServer();
  const env = { ...process.env, ...server.env, OPENAI_API_KEY: '', PERDURE_MODEL: '' };
  const child = spawn(process.execPath, childScript(WORKER), {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [log] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  const lines = log.split('\n').filter((line) => line !== '');
  for (const line of lines) expect(line).toMatch(/^\d\d:\d\d:\d\d (?:WARN|ERROR) /);
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.length).toBeLessThan(10);
});
