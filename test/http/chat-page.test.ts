import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import { createServer, listen } from '../../src/http.js';
import type { Model } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { startChromium } from '../support/console-pages.js';
import { contractPackages } from '../support/contract-packages.js';
import { createRig } from '../support/rig.js';

/** The chat of docs/chat-in-the-browser.md, compiled and used as its reader does. */
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MOST_LINES = 40;
const packages = await contractPackages();
const page = await readFile(join(ROOT, 'docs/chat-in-the-browser.md'), 'utf8');
const blockOf = (file: string): string =>
  new RegExp(`^\`\`\`\\w+\\n(?:// |<!-- )${file}(?: -->)?\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(
    page,
  )?.[1] ?? '';
const chat = blockOf('chat.tsx');
const folder = typeof packages === 'string' ? '' : join(packages.folder, `page-${randomUUID()}`);
afterAll(async () => {
  if (folder !== '') await rm(folder, { recursive: true, force: true });
});

test('it has at most 40 lines, with approvals', () => {
  const code = chat.split('\n').filter((line) => !/^\s*(?:$|\/\/|\/\*\*)/.test(line));
  expect(code.length).toBeGreaterThan(20);
  expect(code.length).toBeLessThanOrEqual(MOST_LINES);
  expect(chat).toContain('addToolApprovalResponse');
});

/** Writes the chat beside its packages; `ai` is the one of `useChat`. */
async function written(api: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, 'chat.tsx');
  await writeFile(file, chat.replace('http://127.0.0.1:8788', api));
  return file;
}

test('its types fit those of its packages', async (context) => {
  if (typeof packages === 'string') return context.skip(packages);
  const file = await written('http://127.0.0.1:8788');
  const options = {
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    jsx: 'react-jsx',
    module: 'esnext',
    moduleResolution: 'bundler',
    target: 'es2022',
    lib: ['es2023', 'dom'],
    types: ['react', 'react-dom'],
    paths: { ai: ['../node_modules/@ai-sdk/react/node_modules/ai'] },
  };
  const project = join(folder, 'tsconfig.json');
  await writeFile(project, JSON.stringify({ compilerOptions: options, files: [file] }));
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const { stdout } = await promisify(execFile)(tsc, ['-p', project]).catch((error) => error);
  expect(stdout).toBe('');
});

const model: Model = {
  async call({ messages }) {
    const last = messages.at(-1);
    if (last?.role === 'tool') return replyText(`It says: ${last.text}`);
    return last?.text === 'book two' ? replyCall('book', { tickets: 2 }) : replyText('Welcome.');
  },
};

const guide = defineAgent({
  name: 'guide',
  instructions: 'You guide visitors of a museum.',
  model: 'm',
  tools: [
    defineTool({
      name: 'book',
      description: 'Books tickets.',
      input: z.object({ tickets: z.number().int() }),
      effect: 'keyed',
      execute: ({ tickets }) => `booked ${tickets} tickets`,
    }),
  ],
  rules: [{ tool: 'book', then: 'ask' }],
});

test('a person chats and approves in it, also after the server was away', async (context) => {
  if (typeof packages === 'string') return context.skip(packages);
  const browser = await startChromium();
  if (browser === null) return context.skip('no Chromium is installed: apt-get install chromium');
  const rig = await createRig();
  let script = '';
  const html = blockOf('index.html').replace('chat.tsx', 'chat.js');
  const files = createHttpServer(({ url }, response) => {
    response.setHeader('content-type', url === '/chat.js' ? 'text/javascript' : 'text/html');
    response.end(url === '/chat.js' ? script : html);
  }).listen(0, 'localhost');
  await once(files, 'listening');
  const { port } = files.address() as { readonly port: number };
  const origin = `http://localhost:${port}`;
  await rig.worker([guide], { models: { m: model }, live: {} });
  const client = await clientOf(rig);
  const config = defineConfig({ agents: [guide], serve: { origins: [origin] } });
  const open = async (at = 0) =>
    await listen(await createServer({ client, config, env: {} }), { port: at });
  const first = await open();
  try {
    const built = await build({
      entryPoints: [await written(first.url)],
      bundle: true,
      write: false,
      format: 'esm',
      target: 'es2022',
      jsx: 'automatic',
      define: { 'process.env.NODE_ENV': '"production"' },
      alias: { ai: join(packages.folder, 'node_modules/@ai-sdk/react/node_modules/ai') },
    });
    script = built.outputFiles[0]?.text ?? '';
    const tab = await browser.newPage();
    tab.setDefaultTimeout(45_000);
    const faults: string[] = [];
    tab.on('pageerror', (error) => faults.push(error.message));
    await tab.goto(origin);
    const say = async (text: string): Promise<void> => {
      await tab.locator('input[name=text]:enabled').fill(text);
      await tab.keyboard.press('Enter');
    };
    await say('hello');
    await tab.getByText('Welcome.').waitFor();
    await say('book two');
    await tab.getByText('book {"tickets":2}').waitFor();
    // Enter in the field sends a message, and approves nothing.
    expect(await tab.locator('[type=submit]').count()).toBe(0);
    await first.close();
    await tab.reload().catch(() => undefined);
    const second = await open(Number(new URL(first.url).port));
    try {
      await tab.goto(origin);
      await tab.getByText('book {"tickets":2}').waitFor();
      await tab.locator('[value=yes]').click();
      await tab.getByText('It says: booked 2 tickets').waitFor();
      expect(await tab.locator('[value=yes]').count()).toBe(0);
      await tab.reload();
      await tab.getByText('It says: booked 2 tickets').waitFor();
      expect(await tab.getByText('Welcome.').count()).toBe(1);
      expect(faults.filter((fault) => !fault.includes('fetch'))).toEqual([]);
    } finally {
      await second.close();
    }
  } finally {
    await browser.close();
    files.close();
    await client.disconnect();
    await rig.close();
  }
});
