import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { loadConfig } from '../../src/cli/input/load-config.js';
import { createClient } from '../../src/client.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import type { Reply } from '../../src/testing/replies.js';
import { type Stub, startStub } from '../../src/testing/stub-server.js';
import { createRig } from './rig.js';

/** The code of a page `docs/coming-from-*`: the other library's block, and those of perdure. */
export interface PortedPage {
  readonly theirs: string;
  readonly ours: readonly string[];
  /** What the page's program or command starts. */
  readonly agent: string;
  readonly message: string;
}

/**
 * Reads a section of a page, by default the first. The other library's block is `typescript` or `python`; those of
 * perdure are `ts`.
 */
export async function readPorted(page: string, section = 1): Promise<PortedPage> {
  const whole = await readFile(`docs/coming-from-${page}.md`, 'utf8');
  const text = whole.split(/^## /m)[section] ?? '';
  const [, theirs = ''] = /^```(?:typescript|python)\n([\s\S]*?)^```$/m.exec(text) ?? [];
  const ours = [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code);
  const start = /client\.run\('?(\w+)'?, '([^']+)'|perdure run (\w+) "([^"]+)"/.exec(text) ?? [];
  const [, name, words, commandName = '', commandWords = ''] = start;
  return { theirs, ours, agent: name ?? commandName, message: words ?? commandWords };
}

/** Executes the other library's side against the stub, and returns what it has printed. */
export type TheirSide = (page: PortedPage, stub: Stub) => Promise<string>;

/** The program that executes a block, and the folder in which it finds its library. */
interface Program {
  readonly command: string;
  /** The packages of the library are in `node_modules` of this folder, or above it. */
  readonly folder: string;
}

/** A side that is a program: a block for Node, or for Python. */
export function program({ command, folder }: Program): TheirSide {
  return async ({ theirs }, stub) => {
    const isPython = basename(command).startsWith('python');
    const cache = join(folder, 'node_modules', '.cache');
    await mkdir(cache, { recursive: true });
    const file = join(cache, `page-${randomUUID()}.${isPython ? 'py' : 'mjs'}`);
    await writeFile(file, isPython ? theirs : (await transform(theirs, { loader: 'ts' })).code);
    try {
      // In a process of its own, because a library reads the address when it is loaded first.
      const { stdout } = await promisify(execFile)(command, [file], {
        env: {
          ...process.env,
          OPENAI_BASE_URL: stub.baseUrl,
          OPENAI_API_KEY: 'none',
          // The SDK would send its traces to OpenAI, and LiteLLM would load its prices.
          OPENAI_AGENTS_DISABLE_TRACING: '1',
          LITELLM_LOCAL_MODEL_COST_MAP: 'True',
        },
      });
      // LlamaBot also prints the reply while it comes.
      return stdout.trim().replace(/^\{.*\}/, '');
    } finally {
      await rm(file, { force: true });
    }
  };
}

/** What a side has done: what it has printed or answered, and what its model was asked. */
interface SideResult {
  readonly answer: string;
  readonly modelCalls: number;
  /** The results of tools that the model has read. */
  readonly results: readonly unknown[];
}

/** Executes both sides of a page against the same script. A test expects the same of both. */
export async function compareSides(
  page: string,
  steps: readonly Reply[],
  theirSide: TheirSide,
): Promise<{ readonly theirs: SideResult; readonly ours: SideResult }> {
  const read = await readPorted(page);
  return {
    theirs: await playSide(steps, async (stub) => await theirSide(read, stub)),
    ours: await playSide(steps, async (stub) => await ourSide(read, stub)),
  };
}

async function playSide(
  steps: readonly Reply[],
  side: (stub: Stub) => Promise<string>,
): Promise<SideResult> {
  const stub = await startStub();
  try {
    stub.script(...steps);
    const answer = await side(stub);
    stub.assertConsumed();
    return { answer, modelCalls: stub.requestCount, results: resultsIn(stub) };
  } finally {
    await stub.close();
  }
}

function resultsIn({ requests }: Stub): readonly unknown[] {
  const messages = requests.at(-1)?.messages ?? [];
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
}

/** Runs the page's agent on a worker, and approves what it asks, as the other side does. */
async function ourSide({ ours, agent, message }: PortedPage, { baseUrl }: Stub): Promise<string> {
  const [configuration = ''] = ours;
  const folder = await mkdtemp(join(tmpdir(), 'perdure-ported-'));
  const rig = await createRig();
  try {
    await writeFile(join(folder, 'perdure.config.ts'), configuration);
    const { agents } = await loadConfig({ folder, env: {} });
    const env = { PERDURE_HOME: rig.home, OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: 'none' };
    await rig.worker(agents, { env });
    const { client: temporal, taskQueue, home } = rig;
    await using client = await createClient({ client: temporal, taskQueue, home, env: {} });
    const name = agents.some((one) => one.name === agent) ? agent : (agents[0]?.name ?? '');
    const { id } = await client.start(name, message);
    const over = new AbortController();
    const [outcome] = await Promise.all([
      client.result(id).finally(() => over.abort()),
      approveAll(client, id, over.signal),
    ]);
    return printed(outcome);
  } finally {
    await rig.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** What the program of the page prints: the name if the answer is a person, else the answer. */
function printed({ status, answer, output }: Outcome<unknown>): string {
  if (status !== 'completed') throw new Error(`the run ended as ${status}`);
  const isPerson = typeof output === 'object' && output !== null && 'name' in output;
  return isPerson ? String(output.name) : (answer ?? '');
}

async function approveAll(client: PerdureClient, run: string, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    for (const { id, digest } of (await client.requests({ run })).requests) {
      await client.resolve(run, { request: id, digest, as: 'approve' });
    }
    await sleep(100);
  }
}
