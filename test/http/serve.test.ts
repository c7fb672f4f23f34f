import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { ThreadAgent } from '../../examples/ag-ui/thread-agent.js';
import { httpClient } from '../../src/http.js';
import type { StreamEvent } from '../../src/live/stream.js';
import { say, textsOf } from '../support/ag-ui.js';
import { builtProgram } from '../support/built-program.js';
import { NO_THREAD } from '../support/child-script.js';
import { freePort } from '../support/free-port.js';
import { gate } from '../support/gate.js';
import { HELD_TEXT, holdReplies } from '../support/held-reply.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';
import { workerChild, workerHere } from '../support/worker-child.js';

const run = promisify(execFile);

let folder: string;
let program: string;
let desk: HttpDesk;
const children: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perdure-serve-'));
  program = await builtProgram();
  desk = await openHttpDesk(['web']);
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await desk.close();
  await rm(folder, { recursive: true, force: true });
});

function command(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return [
    process.execPath,
    [program, 'serve', ...args],
    {
      cwd: folder,
      env: {
        ...process.env,
        ...NO_THREAD,
        PERDURE_HOME: folder,
        TEMPORAL_ADDRESS: inject('temporalAddress'),
        ...env,
      },
    },
  ] as const;
}

/** Starts the command, and returns its address, which it prints as one line of JSON. */
async function serve(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const child = spawn(...command([...args, '--json'], env));
  children.push(child);
  let out = '';
  let notes = '';
  child.stderr?.on('data', (part: Buffer) => (notes += String(part)));
  child.stdout?.on('data', (part: Buffer) => (out += String(part)));
  const printed = async (): Promise<void> => {
    while (!out.includes('\n')) await once(child.stdout, 'data');
  };
  await Promise.race([printed(), once(child, 'exit').then(() => Promise.reject(new Error(notes)))]);
  const { url }: { url: string } = JSON.parse(out);
  return url;
}

test('perdure serve answers for the agents of the configuration, with a worker of its own', async () => {
  const taskQueue = `serve-${randomUUID()}`;
  await writeFile(
    join(folder, 'perdure.config.ts'),
    `import { defineAgent, defineConfig } from 'perdure';
export default defineConfig({
  agents: [defineAgent({ name: 'greeter', instructions: 'Greet.', model: 'demo' })],
  serve: { keys: { ann: 'ANN_KEY' } },
  taskQueue: '${taskQueue}',
});`,
  );
  const url = await serve(['--port', '0'], { ANN_KEY: keyOf('ann') });
  const api = httpClient({ url, key: keyOf('ann') });
  expect((await api.listAgents({})).agents.map(({ name }) => name)).toEqual(['greeter']);
  const { id } = await api.startRun({ agent: 'greeter', message: 'Hello' });
  expect((await api.getResult({ run: id })).outcome?.status).toBe('completed');
  expect((await fetch(`${url}/v1/agents`)).status).toBe(401);

  // Another project on the same task queue, for which that worker has no agent.
  const config = join(folder, 'other.config.ts');
  await writeFile(
    config,
    `import { defineAgent, defineConfig } from 'perdure';
const clerk = defineAgent({ name: 'clerk', instructions: 'Note.', model: 'demo' });
export default defineConfig({ agents: [clerk], taskQueue: '${taskQueue}' });`,
  );
  const other = spawn(...command(['--port', '0', '--config', config]));
  children.push(other);
  let notes = '';
  while (!notes.includes('lacks clerk, so runs of it are blocked')) {
    const [part] = await once(other.stderr ?? other, 'data');
    notes += String(part);
  }
});

test('a stream goes on after kill -9 of the server and its worker, with no text lost or doubled', async () => {
  const taskQueue = `killed-${randomUUID()}`;
  const port = String(await freePort());
  const args = ['--no-config', '--task-queue', taskQueue, '--port', port];
  const env = { PERDURE_DEMO_DELAY_MS: '1500', PERDURE_MODEL: 'demo', OPENAI_API_KEY: '' };
  const url = await serve(args, env);
  const api = httpClient({ url });
  const { id } = await api.startRun({ agent: 'files', message: 'What is this project about?' });
  const events: StreamEvent[] = [];
  let isKilled = false;
  for await (const event of api.events(id)) {
    events.push(event);
    if (event.type !== 'model-replied' || isKilled) continue;
    isKilled = true;
    children.at(-1)?.kill('SIGKILL');
    await serve(args, env);
  }
  expect(events.at(-1)?.type).toBe('run-ended');
  const offsets = events.flatMap((event) =>
    'offset' in event && 'at' in event ? [event.offset] : [],
  );
  expect(new Set(offsets).size).toBe(offsets.length);
  const replies = events.flatMap((event) =>
    event.type === 'model-replied' ? [event.message.text] : [],
  );
  const { messages } = await api.getTranscript({ run: id });
  const recorded = messages.flatMap(({ role, text }) => (role === 'assistant' ? [text] : []));
  expect(replies).toEqual(recorded);
});

test('a response goes on after kill -9 of the server in mid-text, with no text lost or doubled', async () => {
  const [half, rest] = [gate(), gate()];
  desk.talker.on('killed in mid-text', async ({ emit }) => {
    emit('Hel');
    await half.wait();
    emit('lo wor');
    await rest.wait();
    return 'Hello world';
  });
  const port = String(await freePort());
  const { home, taskQueue } = desk.rig;
  await writeFile(
    join(folder, 'perdure.config.ts'),
    `import { defineAgent, defineConfig } from 'perdure';
export default defineConfig({
  agents: [defineAgent({ name: 'talker', instructions: 'talk', model: 'demo' })],
  taskQueue: '${taskQueue}',
});`,
  );
  const args = ['--no-worker', '--port', port];
  const env = { PERDURE_HOME: home, PERDURE_SERVE_KEYS: `web:${keyOf('web')}` };
  const url = await serve(args, env);
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: keyOf('web') });
  const events: ResponseStreamEvent[] = [];
  const first = await openai.responses.create({
    model: 'talker',
    input: 'killed in mid-text',
    stream: true,
  });
  const failure = await (async () => {
    for await (const event of first) {
      events.push(event);
      if (event.type === 'response.output_text.delta') children.at(-1)?.kill('SIGKILL');
    }
    return null;
  })().catch((error: unknown) => error);
  expect(failure).not.toBeNull();
  await serve(args, env);
  const [created] = events;
  if (created?.type !== 'response.created') throw new Error('no response');
  const after = { stream: true, starting_after: events.at(-1)?.sequence_number ?? -1 } as const;
  half.release();
  for await (const event of await openai.responses.retrieve(created.response.id, after)) {
    events.push(event);
    if (event.type === 'response.output_text.delta') rest.release();
  }
  const numbers = events.map((event) => event.sequence_number);
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  const deltas = events.flatMap((event) =>
    event.type === 'response.output_text.delta' ? [event.delta] : [],
  );
  expect(deltas[0]).toBe('Hel');
  expect(deltas.join('')).toBe('Hello world');
  expect(events.at(-1)?.type).toBe('response.completed');
});

/** How a client reads a reply at an interface: what it gets until it is cut off, and what when it comes back. */
interface Reading {
  readonly begin: (url: string, seen: (text: string) => void) => Promise<void>;
  /** Resolves with the whole text that the client has in the end. `attached`: it follows the run now. */
  readonly resume: (url: string, attached: () => void) => Promise<string>;
}

function readResponse(): Reading {
  const events: ResponseStreamEvent[] = [];
  const openai = (url: string): OpenAI =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: keyOf('web'), maxRetries: 0 });
  const textSoFar = (): string =>
    events
      .flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : []))
      .join('');
  return {
    async begin(url, seen) {
      const request = { model: 'crash', input: 'talk', stream: true } as const;
      for await (const event of await openai(url).responses.create(request)) {
        events.push(event);
        seen(textSoFar());
      }
    },
    async resume(url, attached) {
      const [created] = events;
      if (created?.type !== 'response.created') throw new Error('no response');
      const after = events.at(-1)?.sequence_number ?? -1;
      const query = { stream: true, starting_after: after } as const;
      const { id } = created.response;
      const stream = await openai(url).responses.retrieve(id, query);
      attached();
      for await (const event of stream) events.push(event);
      const numbers = events.map((event) => event.sequence_number);
      expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
      expect((await openai(url).responses.retrieve(id)).output_text).toBe(textSoFar());
      return textSoFar();
    },
  };
}

function readChat(): Reading {
  const chat = `chat-${randomUUID()}`;
  const headers = { authorization: `Bearer ${keyOf('web')}`, 'content-type': 'application/json' };
  const textOf = async (response: Response, seen: (text: string) => void): Promise<string> => {
    let sent = '';
    let text = '';
    for await (const part of (response.body ?? new ReadableStream()).pipeThrough(
      new TextDecoderStream(),
    )) {
      sent += part;
      const deltas = [...sent.matchAll(/^data: (\{"type":"text-delta".*\})$/gm)];
      text = deltas.map(([, json = '{}']) => String(JSON.parse(json).delta)).join('');
      seen(text);
    }
    return text;
  };
  return {
    async begin(url, seen) {
      const parts = [{ type: 'text', text: 'talk' }];
      const messages = [{ id: randomUUID(), role: 'user', parts }];
      const body = JSON.stringify({ id: chat, trigger: 'submit-message', messages });
      await textOf(await fetch(`${url}/v1/ui/crash`, { method: 'POST', headers, body }), seen);
    },
    async resume(url, attached) {
      const response = await fetch(`${url}/v1/ui/crash/${chat}/stream`, { headers });
      // 204, without a body, if the turn were over.
      expect(response.status).toBe(200);
      attached();
      return await textOf(response, () => undefined);
    },
  };
}

function readThread(): Reading {
  const headers = { authorization: `Bearer ${keyOf('web')}` };
  const threadId = `thread-${randomUUID()}`;
  const textOf = ({ messages }: ThreadAgent): string =>
    textsOf(messages).at(-1)?.replace('assistant: ', '') ?? '';
  return {
    async begin(url, seen) {
      const agent = new ThreadAgent({ url: `${url}/v1/ag-ui/crash`, threadId, headers });
      let isLost = false;
      agent.subscribe({
        onTextMessageContentEvent: ({ event, textMessageBuffer }) =>
          seen(textMessageBuffer + event.delta),
        onRunErrorEvent: () => void (isLost = true),
      });
      await say(agent, 'talk').catch(() => undefined);
      if (isLost) throw new Error('Connection lost');
    },
    async resume(url, attached) {
      const agent = new ThreadAgent({ url: `${url}/v1/ag-ui/crash`, threadId, headers });
      agent.subscribe({ onRunStartedEvent: attached });
      await agent.connectAgent();
      expect(textsOf(agent.messages).slice(0, -1)).toEqual(['user: talk']);
      return textOf(agent);
    },
  };
}

test.each([
  ['a response', readResponse],
  ['a chat', readChat],
  ['a thread of AG-UI', readThread],
])(
  '%s goes on after kill -9 of the server and the worker in mid-text, with no text lost or doubled',
  { timeout: 120_000 },
  async (_what, reading) => {
    const taskQueue = `cut-${randomUUID()}`;
    const home = await mkdtemp(join(tmpdir(), 'perdure-cut-'));
    const { stub, env: worker } = await holdReplies({ taskQueue, home });
    const first = await workerChild(worker);
    const port = String(await freePort());
    const config = join(home, 'perdure.config.ts');
    await writeFile(
      config,
      `import { defineAgent, defineConfig } from 'perdure';
export default defineConfig({
  agents: [defineAgent({ name: 'crash', instructions: 'talk', model: 'demo' })],
  taskQueue: '${taskQueue}',
});`,
    );
    const args = ['--no-worker', '--config', config, '--port', port];
    const env = { PERDURE_HOME: home, PERDURE_SERVE_KEYS: `web:${keyOf('web')}` };
    const client = reading();
    const url = await serve(args, env);
    const server = children.at(-1);
    const cutOff = client.begin(url, (text) => {
      if (text.length > 50) server?.kill('SIGKILL');
    });
    await expect(cutOff).rejects.toThrow(/terminated|aborted|ECONNRESET|Connection|premature/i);
    await first.kill();
    const second = await workerHere(worker);
    await serve(args, env);
    const attached = gate();
    const text = client.resume(url, () => attached.release());
    await Promise.all([attached.wait(), stub.barrier('second').reached]);
    stub.barrier('second').release();
    expect(await text).toBe(HELD_TEXT);
    children.at(-1)?.kill('SIGKILL');
    await second.stop();
    await stub.close();
    await rm(home, { recursive: true, force: true });
  },
);

test.each([
  [
    ['--host', '0.0.0.0'],
    {},
    /--host: expected 127\.0\.0\.1 .*got "0\.0\.0\.0"; set PERDURE_SERVE_KEYS/,
  ],
  [['--port', '70000'], {}, /--port: expected 1 to 65535/],
  [[], { PERDURE_SERVE_KEYS: 'ann:short' }, /the key of "ann": expected at least 16 visible/],
  [[], { PERDURE_SERVE_KEYS: 'nameless' }, /expected name:key, comma-separated/],
])('perdure serve %j is a usage error, before anything is started', async (args, env, text) => {
  const failed = await run(...command(['--no-config', ...args], env)).catch(
    (error: unknown) => error,
  );
  expect(failed).toMatchObject({ code: 2, stderr: expect.stringMatching(text) });
});

test('the curl lines of the pages work as they are', async () => {
  const pages = await Promise.all(
    ['server', 'server-clients'].map((name) =>
      readFile(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8'),
    ),
  );
  const blocks = [...pages.join('\n').matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(
    ([, code = '']) => code,
  );
  expect(blocks.length).toBeGreaterThan(6);
  const outputs: string[] = [];
  for (const block of blocks) {
    const digest = /"digest":"([0-9a-f]{64})"/.exec(outputs.at(-1) ?? '')?.[1] ?? '';
    const env = { ...process.env, URL: desk.url, KEY: keyOf('web'), DIGEST: digest };
    if (block.includes('/requests/r1')) {
      await expect.poll(async () => (await desk.client.status('order-17')).pending.length).toBe(1);
    }
    const { stdout } = await run('bash', ['-c', block], { env });
    outputs.push(stdout);
  }
  expect(outputs.join('\n')).toMatch(/"answer":"done: paid 80"/);
  expect(outputs.join('\n')).toMatch(/^event: run-started$/m);
});
