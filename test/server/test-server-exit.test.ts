import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { childScript } from '../support/child-script.js';

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
