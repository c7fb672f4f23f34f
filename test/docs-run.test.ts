import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { transform } from 'esbuild';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type * as PerdureHttp from '../src/http.js';
import type * as Perdure from '../src/index.js';
import type { Model } from '../src/models/model.js';
import { replyCall, replyText } from '../src/testing/replies.js';
import { type TestServer, startTestServer } from '../src/server/test-server.js';
import { builtTree } from './support/built-program.js';

const root = fileURLToPath(new URL('..', import.meta.url));
// Inside the repository, so that the blocks find its dependencies.
const folder = join(root, 'node_modules', '.cache', `perdure-blocks-${process.pid}`);
/** The global variable with the agents of the page whose blocks run. */
const AGENTS = 'agentsOfPage';
/** Installs the runtime of the SDK, of which a process has one, and does not end. */
const NEEDS_PROCESS = /createWorker\(/;
/** Reads the terminal, which a test does not have. */
const NEEDS_TERMINAL = /process\.stdin/;

/** A `ts` block of a page. */
interface Block {
  /** Names the page and the block's number on it. */
  readonly name: string;
  readonly code: string;
}

/** Blocks list what waits on their server, where runs of other tests would wait as well. */
let server: TestServer;
let product: typeof Perdure;
let sdk: Client;
let built: string;
let home: string;

beforeAll(async () => {
  server = await startTestServer();
  built = join(await builtTree(), 'dist');
  home = await mkdtemp(join(tmpdir(), 'perdure-blocks-'));
  await mkdir(folder, { recursive: true });
  // The configuration that blocks import, with the agents of their page. A client refuses an agent that
  // it does not have.
  await writeFile(
    join(folder, 'perdure.config.js'),
    `import { defineAgent, defineConfig } from ${JSON.stringify(entryUrl('index'))};
const agents = globalThis.${AGENTS} ?? [defineAgent({ name: 'desk', instructions: 'Help customers.' })];
export default defineConfig({ agents });
export const extractor = agents.find(({ name }) => name === 'extractor');
`,
  );
  product = (await import(entryUrl('index'))) as typeof Perdure;
  sdk = new Client({
    connection: await Connection.connect({ address: server.address }),
  });
});
afterEach(() => vi.unstubAllEnvs());
afterAll(async () => {
  await sdk.connection.close();
  await server.close();
  await rm(folder, { recursive: true, force: true });
  await rm(home, { recursive: true, force: true });
});

function entryUrl(name: string): string {
  return pathToFileURL(join(built, `${name}.js`)).href;
}

async function blocksOf(page: string): Promise<readonly Block[]> {
  const markdown = await readFile(join(root, page), 'utf8');
  return [...markdown.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ''], index) => ({
    name: `${page.replaceAll(/[/.]/g, '-')}-${index}`,
    code,
  }));
}

/** The address of `perdure serve` on the pages. */
const SERVER = 'http://127.0.0.1:8788';

/** Compiles a block as `tsx` does, links it to the built product, and returns its file. */
async function compile({ name, code }: Block, serverUrl = SERVER): Promise<string> {
  const page = name.replace(/-\d+(?:-definitions)?$/, '');
  // The workers of a page run together, each with a port of its own for metrics.
  const here = code.replaceAll(SERVER, serverUrl).replaceAll('127.0.0.1:9464', '127.0.0.1:0');
  const { code: js } = await transform(here, { loader: 'ts', target: 'node20' });
  const linked = js.replaceAll(
    /from "perdure(?:\/([\w-]+))?"/g,
    (_, entry: string | undefined) => `from ${JSON.stringify(entryUrl(entry ?? 'index'))}`,
  );
  const file = join(folder, `${name}.mjs`);
  // Each page gets a configuration of its own.
  await writeFile(file, linked.replaceAll('./perdure.config.js', `./perdure.config.js?${page}`));
  return file;
}

/** Returns the agents that a module exports, itself or in a configuration. */
function agentsIn(exports: Readonly<Record<string, unknown>>): readonly Perdure.Agent[] {
  return Object.values(exports).flatMap((value) => {
    if (typeof value !== 'object' || value === null) return [];
    // An agent also has `agents`: those that it calls.
    if ('instructions' in value) return [value as Perdure.Agent];
    return 'agents' in value && Array.isArray(value.agents)
      ? (value.agents as Perdure.Agent[])
      : [];
  });
}

/** Answers in the form that the agents of the pages require. */
const model: Model = {
  async call(request) {
    const text = JSON.stringify(request);
    // The second joke pleases, as the judge's feedback demands.
    if (text.includes('Judge this joke')) {
      return replyText(JSON.stringify({ funny: text.includes('in a hat'), feedback: 'add a hat' }));
    }
    if (text.includes('Write a joke')) {
      return replyText(text.includes('add a hat') ? 'A cat in a hat.' : 'A cat.');
    }
    if (text.includes('Sort messages of customers')) return replyText('{"kind":"question"}');
    if (text.includes('weather in Oslo')) {
      return text.includes('sunny')
        ? replyText('It is sunny in Oslo.')
        : replyCall('weather', { city: 'Oslo' });
    }
    return replyText(text.includes('Plan a trip') ? '{"steps":["go"]}' : 'done');
  },
};

/** What the blocks of a page must have printed, if that shows that they do what the page says. */
const PRINTED: Readonly<Record<string, string>> = {
  'docs/coming-from-langgraph.md': 'A cat in a hat.',
  'docs/server-clients.md': 'It is sunny in Oslo.',
};

/** Approves what the runs of a task queue wait for, as a person would, until it is called. */
function approveAll(client: Perdure.PerdureClient, taskQueue: string): () => Promise<void> {
  const over = new AbortController();
  const watching = (async () => {
    while (!over.signal.aborted) {
      // Other tests use the server, too.
      for await (const { workflowId } of sdk.workflow.list({
        query: `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`,
      })) {
        for (const { run, id, digest } of (await client.requests({ run: workflowId })).requests) {
          const as = 'approve' as const;
          await client.resolve(run, { request: id, digest, as }).catch(() => undefined);
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  return async () => {
    over.abort();
    await watching;
  };
}

/** Runs a block that reads the terminal as a process, and returns what it has printed. */
async function chatOf(file: string): Promise<string> {
  const child = spawn(process.execPath, [file], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end('Hello\n');
  let text = '';
  for await (const chunk of child.stdout) text += String(chunk);
  return text;
}

/** Runs a worker's block as a process, ends it once it polls, and returns what it has printed. */
async function outputOf(file: string): Promise<string> {
  const child = spawn(process.execPath, [file], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  return await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        const wasRunning = text.includes('RUNNING');
        text += chunk.toString();
        // A second signal would end it at once.
        if (!wasRunning && text.includes('RUNNING')) child.kill('SIGTERM');
      });
    }
    child.on('error', reject);
    child.on('close', () => resolve(text));
  });
}

const pages = [
  'README.md',
  'skills/perdure/SKILL.md',
  ...(await readdir(join(root, 'docs'))).map((name) => `docs/${name}`),
];
const withBlocks = await Promise.all(
  pages
    .filter((page) => page.endsWith('.md'))
    .map(async (page) => ({ page, blocks: await blocksOf(page) })),
);

// The blocks of workers are processes of their own, which are slow to start on a busy machine.
test.each(withBlocks.filter(({ blocks }) => blocks.length > 0))(
  'the blocks of $page run',
  async ({ page, blocks }) => {
    const { address } = server;
    const taskQueue = `blocks-${randomUUID()}`;
    vi.stubEnv('TEMPORAL_ADDRESS', address);
    vi.stubEnv('PERDURE_TASK_QUEUE', taskQueue);
    vi.stubEnv('PERDURE_HOME', home);
    vi.stubEnv('PERDURE_MODEL', 'page');
    const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    const { createServer, listen } = (await import(entryUrl('http'))) as typeof PerdureHttp;
    await using http = await createServer();
    const listening = await listen(http, {});
    onTestFinished(() => listening.close());
    const compiled = await Promise.all(
      blocks.map(async (block) => ({ ...block, file: await compile(block, listening.url) })),
    );
    // A test for vitest cannot run within this one; `perdure init` writes such a test, which is run.
    const programs = compiled.filter(({ code }) => !code.includes("from 'vitest'"));
    const using = programs.filter(({ code }) => /createClient\(|:8788/.test(code));
    const found = new Map<string, Perdure.Agent>();
    // What blocks define comes first, since what they do with a client waits for a worker.
    const defining = programs.filter(
      ({ code }) => !NEEDS_PROCESS.test(code) && !code.includes(SERVER),
    );
    for (const { name, code } of defining) {
      const [definitions = ''] = code.split(/^await using /m);
      const file = await compile({ name: `${name}-definitions`, code: definitions });
      const exports = { ...((await import(file)) as object) };
      for (const agent of agentsIn(exports)) found.set(agent.name, agent);
    }
    for (const name of ['desk', 'assistant']) {
      if (blocks.some(({ code }) => code.includes(`name: '${name}'`))) continue;
      found.set(name, product.defineAgent({ name, instructions: 'Help customers.' }));
    }
    Reflect.set(globalThis, AGENTS, [...found.values()]);
    const worker = await product.createWorker({
      config: product.defineConfig({
        agents: [...found.values()],
        models: { page: model, 'gpt-4.1-mini': model },
      }),
    });
    const client = await product.createClient();
    const stop = approveAll(client, taskQueue);
    try {
      if (blocks.some(({ code }) => code.includes("'desk-1'"))) {
        await client.start('desk', { id: 'desk-1', open: true });
      }
      for (const { file, code } of using) {
        if (NEEDS_TERMINAL.test(code)) expect(await chatOf(file)).toBe('> done\n> ');
        else await import(file);
      }
    } finally {
      await stop();
      await client.disconnect();
      await worker.shutdown();
    }
    // A block with a client has run above, and has ended its worker itself.
    const workers = programs.filter((block) => !using.includes(block));
    const processes = workers.filter(({ code }) => NEEDS_PROCESS.test(code));
    const outputs = await Promise.all(processes.map(({ file }) => outputOf(file)));
    for (const output of outputs) expect(output).toContain('STOPPED');
    expect(compiled).toHaveLength(blocks.length);
    const printed = PRINTED[page];
    if (printed !== undefined) expect(log).toHaveBeenCalledWith(printed);
  },
  180_000,
);
