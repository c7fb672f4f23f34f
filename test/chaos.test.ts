import { fork } from 'node:child_process';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { builtTree } from './support/built-program.js';

test('the worker of the chaos run starts with the built package', async () => {
  const home = await mkdtemp(join(tmpdir(), 'perdure-chaos-worker-'));
  const worker = fork('chaos/worker.js', {
    env: {
      PATH: process.env['PATH'],
      PACKAGE: join(await builtTree(), 'dist'),
      ADDRESS: inject('temporalAddress'),
      QUEUE: `chaos-${randomUUID()}`,
      BUNDLE: inject('workflowBundle'),
      LEDGER: 'http://127.0.0.1:9',
      SEGMENT_STEPS: '8',
      FAULTS: '[]',
      PERDURE_HOME: home,
      OPENAI_API_KEY: 'x',
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = once(worker, 'exit');
  const [first] = await Promise.race([once(worker, 'message'), ended]);
  worker.kill('SIGKILL');
  await ended;
  await rm(home, { recursive: true, force: true });
  expect(first).toBe('ready');
});
