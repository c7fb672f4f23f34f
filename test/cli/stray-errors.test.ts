import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import { commandLine, type RunningCommand } from '../support/command.js';
import { asking } from '../support/conversation.js';
import { portOf } from '../support/port-of.js';

/** The SDK handles rejections in the main thread itself if workflow code runs there. */
const THREAD = { TEMPORAL_DEBUG: '' };

const address = inject('temporalAddress');
const command = await commandLine();
const taskQueue = `stray-${randomUUID()}`;
let client: Client;
let worker: RunningCommand;

/** Payments in progress: the test answers each request. */
const payments: ServerResponse[] = [];
const bank = createServer((_, response) => void payments.push(response));

const config = (port: number): string => `
import { EventEmitter } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { defineAgent, defineConfig, defineTool } from 'perdure';
import { z } from 'zod';

const slip = { raise: (kind) => {
  const error = new Error('slipped: ' + kind);
  if (kind === 'rejection') void Promise.reject(error);
  if (kind === 'late rejection') void pause(5).then(() => { throw error; });
  if (kind === 'timer') setTimeout(() => { throw error; }, 5);
  if (kind === 'immediate') setImmediate(() => { throw error; });
  if (kind === 'tick') process.nextTick(() => { throw error; });
  if (kind === 'emitter') { const news = new EventEmitter(); setTimeout(() => news.emit('error', error), 5); }
} };
/** Returns at once only for an error that is raised at once. */
const untilItSlips = (kind) => kind === 'rejection' ? 'fine' : new Promise(() => undefined);
const tool = (name, effect, execute, more = {}) =>
  defineTool({ name, description: name, effect, input: z.object({ kind: z.string() }), execute, ...more });
const tools = [
  tool('careless', 'read', ({ kind }) => { slip.raise(kind); return untilItSlips(kind); }, { retry: { attempts: 1 } }),
  tool('forgetful', 'read', () => { setTimeout(() => { throw new Error('slipped: too late'); }, 5); return 'done'; }),
  tool('reckless', 'once', ({ kind }) => { slip.raise(kind); return untilItSlips(kind); }),
  tool('checked', 'once', () => new Promise(() => undefined), {
    timeout: 50,
    verify: () => { slip.raise('timer'); return new Promise(() => undefined); },
  }),
  tool('pay', 'once', async () => { await fetch('http://127.0.0.1:${port}/'); return 'paid'; }),
];
const byFirstWords = ({ messages }) => {
  const last = messages.at(-1);
  if (last.role === 'tool') return { answer: 'read: ' + last.text };
  const [name, ...kind] = messages[0].text.split(' ');
  return { calls: [{ name, arguments: { kind: kind.join(' ') } }] };
};
const agent = (name, more) => defineAgent({ name, instructions: 'x', model: 'demo', ...more });
export default defineConfig({
  agents: [
    agent('driver', { tools, decide: byFirstWords }),
    agent('finder', { retrieve: { find: () => { slip.raise('timer'); return new Promise(() => undefined); } } }),
    agent('decider', { decide: () => { slip.raise('timer'); return new Promise(() => undefined); } }),
    agent('reader', { output: () => { slip.raise('timer'); return new Promise(() => undefined); }, attempts: 1,
      decide: () => ({ answer: 'x' }) }),
  ],
});
`;

beforeAll(async () => {
  await once(bank.listen(0, '127.0.0.1'), 'listening');
  const folder = await mkdtemp(join(command.folder, 'stray-'));
  await writeFile(join(folder, 'perdure.config.ts'), config(portOf(bank)));
  const place = ['--address', address, '--task-queue', taskQueue];
  worker = command.start(['worker', ...place], { cwd: folder, env: THREAD });
  client = new Client({ connection: await Connection.connect({ address }) });
  await worker.prints('with 4 agents');
});
afterAll(async () => {
  bank.closeAllConnections();
  bank.close();
  await client.connection.close();
});

async function start(agent: string, message: string): Promise<WorkflowHandle> {
  const workflowId = `stray-${randomUUID()}`;
  return await client.workflow.start('agent', {
    taskQueue,
    workflowId,
    args: [{ agent, message }],
  });
}

/** Returns the result of a run, or its failure. */
async function end(agent: string, message: string): Promise<string> {
  const handle = await start(agent, message);
  try {
    return ((await handle.result()) as Outcome).answer ?? '';
  } catch (error) {
    return String((error as Error).cause);
  }
}

describe('an error that a function raises outside its promise', () => {
  test('fails its own call under its name, however it is raised, and no call of another run', async () => {
    const payer = await start('driver', 'pay');
    const kinds = ['rejection', 'late rejection', 'timer', 'immediate', 'tick', 'emitter'];
    const answers = await Promise.all(kinds.map((kind) => end('driver', `careless ${kind}`)));
    for (const [index, kind] of kinds.entries()) {
      expect(answers[index]).toContain('read: ');
      expect(answers[index]).toMatch(new RegExp(`tool \\\\?"careless\\\\?": .*: slipped: ${kind}`));
    }
    await worker.prints(
      'tool "careless": a timer, a listener, or a callback threw: slipped: timer',
    );
    await expect.poll(() => payments.length).toBe(1);
    payments[0]?.end('ok');
    expect(await payer.result()).toMatchObject({ answer: 'read: paid' });
    expect(payments).toHaveLength(1);
  });

  test('leaves the outcome of a once tool unknown', async () => {
    const handle = await start('driver', 'reckless timer');
    const status = await asking(handle);
    expect(status).toMatchObject({ reason: 'outcome_unknown', pending: [{ tool: 'reckless' }] });
    await handle.terminate();
  });

  test('fails verify, retrieve, decide, and output too', async () => {
    const verified = await start('driver', 'checked');
    const [found, decided, read] = await Promise.all([
      end('finder', 'x'),
      end('decider', 'x'),
      end('reader', 'x'),
    ]);
    expect(found).toContain('retrieve of agent "finder": ');
    expect(decided).toContain("the agent's decide function threw: the decide function: ");
    expect(read).toContain('the output function of the agent: ');
    for (const text of [found, decided, read]) expect(text).toContain('slipped: timer');
    await worker.prints('verify of tool "checked": a timer');
    await verified.terminate();
  });

  test('is logged if its call has ended', async () => {
    expect(await end('driver', 'forgetful')).toBe('read: done');
    await worker.prints('tool "forgetful": a timer, a listener, or a callback threw: slipped: too');
    expect(worker.child.exitCode).toBeNull();
  });
});

test('an error outside of any function ends the process with a message', async () => {
  const folder = await mkdtemp(join(command.folder, 'stray-'));
  const agents = `agents: [defineAgent({ name: 'a', instructions: 'x', model: 'demo' })]`;
  await writeFile(
    join(folder, 'perdure.config.ts'),
    `import { defineAgent, defineConfig } from 'perdure';
process.once('SIGUSR2', () => void Promise.reject(new Error('of nobody')));
export default defineConfig({ ${agents} });\n`,
  );
  const place = ['--address', address, '--task-queue', `stray-${randomUUID()}`];
  const lonely = command.start(['worker', ...place], { cwd: folder, env: THREAD });
  await lonely.prints('with 1 agent: a');
  lonely.child.kill('SIGUSR2');
  const { code, stderr } = await lonely.ended;
  expect(code).toBe(1);
  expect(stderr).toContain(
    'The process ends because of an error that belongs to no tool: of nobody',
  );
  expect(stderr).toMatch(/Error: of nobody\n +at /);
});
