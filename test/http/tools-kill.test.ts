import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import type { ResponseInputItem } from 'openai/resources/responses/responses';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { builtProgram } from '../support/built-program.js';
import { NO_THREAD } from '../support/child-script.js';
import { freePort } from '../support/free-port.js';

let folder: string;
let program: string;
const children: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perdure-tools-'));
  program = await builtProgram();
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

/** Starts a server with a worker of its own, and returns its address. */
async function serve(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [program, 'serve', '--no-config', '--json', ...args], {
    cwd: folder,
    env: {
      ...NO_THREAD,
      ...process.env,
      PERDURE_HOME: folder,
      PERDURE_MODEL: 'demo',
      OPENAI_API_KEY: '',
      TEMPORAL_ADDRESS: inject('temporalAddress'),
    },
  });
  children.push(child);
  let out = '';
  child.stdout.on('data', (part: Buffer) => (out += String(part)));
  while (!out.includes('\n')) await once(child.stdout, 'data');
  const { url }: { url: string } = JSON.parse(out);
  return url;
}

test('a call of the client outlives kill -9 of the server and its worker, and is answered once', async () => {
  const port = String(await freePort());
  const args = ['--task-queue', `tools-${randomUUID()}`, '--port', port];
  const openai = new OpenAI({ baseURL: `${await serve(args)}/v1`, apiKey: 'none' });
  const first = await openai.responses.create({
    model: 'files',
    input: 'weather {"city":"Oslo"}',
    tools: [
      {
        type: 'function',
        name: 'weather',
        strict: true,
        parameters: { type: 'object', properties: { city: { type: 'string' } } },
      },
    ],
  });
  children.at(-1)?.kill('SIGKILL');
  await serve(args);
  const read = await openai.responses.retrieve(first.id);
  expect([read.status, read.output]).toEqual([first.status, first.output]);
  const input = first.output.flatMap((item): ResponseInputItem[] =>
    item.type === 'function_call'
      ? [{ type: 'function_call_output', call_id: item.call_id, output: 'sunny' }]
      : [],
  );
  expect(input).toHaveLength(1);
  const answer = { model: 'files', previous_response_id: first.id, input };
  const [one, two] = await Promise.all([
    openai.responses.create(answer),
    openai.responses.create(answer),
  ]);
  expect(two.id).toBe(one.id);
  expect(one.output_text).toContain('sunny');
});
