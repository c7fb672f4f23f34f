import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { httpClient } from '../../src/http.js';
import { builtProgram } from '../support/built-program.js';

let folder: string;
let child: ChildProcess | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perdure-serve-'));
});
afterAll(async () => {
  child?.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

test('a server without a worker names the command that starts one, with its configuration', async () => {
  const taskQueue = `idle-${randomUUID()}`;
  const config = join(folder, 'idle.config.ts');
  await writeFile(
    config,
    `import { defineAgent, defineConfig } from 'perdure';
export default defineConfig({
  agents: [defineAgent({ name: 'idler', instructions: 'Wait.', model: 'demo' })],
});`,
  );
  const options = ['--no-worker', '--config', config, '--task-queue', taskQueue, '--port', '0'];
  const words = [await builtProgram(), 'serve', ...options, '--json'];
  const place = { PERDURE_HOME: folder, TEMPORAL_ADDRESS: inject('temporalAddress') };
  const serving = spawn(process.execPath, words, {
    cwd: folder,
    env: { ...process.env, ...place },
  });
  child = serving;
  let notes = '';
  serving.stderr.on('data', (part: Buffer) => (notes += String(part)));
  const [line] = await once(serving.stdout, 'data');
  const { url }: { readonly url: string } = JSON.parse(String(line));
  const api = httpClient({ url });
  const { id } = await api.startRun({ agent: 'idler', message: 'Hello' });
  const over = new AbortController();
  const result = fetch(`${url}/v1/runs/${id}/result`, { signal: over.signal }).catch(() => null);
  while (!notes.includes('no worker serves')) await once(serving.stderr, 'data');
  expect(notes).toMatch(
    new RegExp(`start one with: .* worker --config ${config} .*--task-queue ${taskQueue}`),
  );
  over.abort();
  await result;
});
