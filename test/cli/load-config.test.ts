import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { UsageError } from '../../src/cli/context.js';
import { loadConfig } from '../../src/cli/input/load-config.js';
import type { Config } from '../../src/config.js';
import { ToolError } from '../../src/tools/errors.js';
import { callFailure, toolNamed } from '../tools/support.js';

let root: string;
let folders = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'perdure-config-'));
});
afterAll(async () => await rm(root, { recursive: true, force: true }));

/** Creates a folder with these files, outside any node_modules. */
async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  folders += 1;
  const folder = join(root, `f${folders}`);
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(folder, name, '..'), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  await mkdir(folder, { recursive: true });
  return folder;
}

async function load(folder: string, file?: string): Promise<Config> {
  return await loadConfig({ folder, file, env: {} });
}

async function mistake(text: string, name = 'perdure.config.ts'): Promise<string> {
  const folder = await folderWith({ [name]: text });
  const error: unknown = await load(folder, name).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UsageError);
  return (error as Error).message;
}

const CONFIG = `import { defineAgent, defineConfig } from 'perdure';
import { tool } from './tools/greet.js';
export default defineConfig({
  agents: [defineAgent({ name: 'greeter', instructions: 'greet', tools: [tool] })],
});
`;

const TOOL = `import { defineTool, ToolError } from 'perdure';
import { replyText } from 'perdure/testing';
import { statusQuery } from 'perdure/workflow';
import { z } from 'zod';

interface Greeting { readonly who: string }

export const tool = defineTool({
  name: 'greet',
  description: 'greets',
  input: z.object({ who: z.string() }),
  effect: 'read',
  execute({ who }: Greeting): string {
    throw new ToolError(\`\${who} \${replyText('x').text} \${statusQuery.name}\`);
  },
});
`;

describe('a configuration', () => {
  test('in TypeScript is loaded even if nothing is installed, and shares our classes', async () => {
    const folder = await folderWith({ 'perdure.config.ts': CONFIG, 'tools/greet.ts': TOOL });
    const { agents } = await load(folder);
    const tool = agents[0]?.tools.tools[0];
    expect(agents.map(({ name }) => name)).toEqual(['greeter']);
    // A second copy of the class would turn every ToolError into an ordinary error.
    await expect(tool?.execute({ who: 'Ann' }, {} as never)).rejects.toThrow(ToolError);
    await expect(tool?.execute({ who: 'Ann' }, {} as never)).rejects.toThrow('Ann x status');
  });

  test.each(['perdure.config.js', 'perdure.config.mjs'])('%s is found too', async (name) => {
    const folder = await folderWith({
      [name]: `import { defineConfig } from 'perdure';\nexport default defineConfig({ agents: [], taskQueue: 'q' });\n`,
    });
    expect(await load(folder)).toEqual({ agents: [], taskQueue: 'q' });
  });

  test('that is missing is replaced by the built-in agent on the files of the folder', async () => {
    const folder = await folderWith({});
    const { agents } = await load(folder);
    expect(agents.map(({ name, model }) => [name, model])).toEqual([['files', 'demo']]);
    const reading = ['list_files', 'read_file', 'search_text'];
    expect(agents[0]?.tools.names).toEqual(reading);
    const permissions = { write: true };
    const writer = await loadConfig({ folder, env: {}, permissions });
    expect(writer.agents[0]?.tools.names).toEqual([...reading, 'write_file']);
    const env = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' };
    const withProvider = await loadConfig({ folder, env });
    expect(withProvider.agents[0]?.model).toBe('gpt-4.1-mini');
    const named = await loadConfig({ folder, env: { ...env, PERDURE_MODEL: 'small' } });
    expect(named.agents[0]?.model).toBe('small');
  });
});

describe('an unwanted configuration', () => {
  test('is not loaded with --no-config', async () => {
    const folder = await folderWith({ 'perdure.config.ts': 'throw new Error("executed");' });
    const { agents } = await loadConfig({ folder, file: false, env: {} });
    expect(agents.map(({ name }) => name)).toEqual(['files']);
  });

  test('is not loaded from the folder for temporary files, where others can write', async () => {
    const temporary = await folderWith({});
    vi.stubEnv('TMPDIR', temporary);
    onTestFinished(() => void vi.unstubAllEnvs());
    await load(await folderWith({ 'perdure.config.ts': CONFIG, 'tools/greet.ts': TOOL }));
    expect(await readdir(temporary, { recursive: true })).toEqual([]);
  });

  test('is not written by the built-in agent, which does not read its own state either', async () => {
    const folder = await folderWith({ 'state/live/worker.json': '{"token":"t"}' });
    const env = { PERDURE_HOME: 'state' };
    const { agents } = await loadConfig({ folder, env, permissions: { write: true } });
    const tools = agents[0]?.tools.tools ?? [];
    const write = { path: 'perdure.config.ts', content: 'export default 7;' };
    const { message } = await callFailure(toolNamed(tools, 'write_file'), write);
    expect(message).toContain('"perdure.config.ts" is not written');
    const read = { path: 'state/live/worker.json' };
    expect((await callFailure(toolNamed(tools, 'read_file'), read)).message).toContain(
      'is not read',
    );
  });

  test('does not get the permissions of the built-in agent', async () => {
    const folder = await folderWith({ 'perdure.config.js': 'export default { agents: [] };' });
    await expect(loadConfig({ folder, env: {}, permissions: { write: true } })).rejects.toThrow(
      '--write, --allow-write, --allow-read: expected the built-in agent, got the configuration perdure.config.js',
    );
  });
});

describe('an error names the file and the fix', () => {
  test('if a file is missing', async () => {
    await expect(load(await folderWith({}), 'my.ts')).rejects.toThrow(
      '--config: expected an existing file, got my.ts; name one that exists, or omit --config',
    );
  });

  test.each([
    [
      'export const agents = [];',
      /^perdure\.config\.ts: expected a default export, got none; end it with/,
    ],
    [
      'export default 7;',
      /^perdure\.config\.ts: expected a configuration as default export, got number/,
    ],
    [
      'export default { agent: [] };',
      /^perdure\.config\.ts: config:[^]*"agent" is not an option; did you mean agents/,
    ],
    [
      'export default { agents: [{}] };',
      /agents\[0\]: expected an agent, got an object; make it with defineAgent/,
    ],
    [
      'const x: number = ;\nexport default x;',
      /^perdure\.config\.ts:1:19: syntax error: Unexpected token$/,
    ],
    ["import x from 'not-there';\nexport default x;", /: Cannot find module 'not-there'$/],
    [
      "import { defineTool } from 'perdure';\nexport default defineTool({ name: 'a b' });",
      /^perdure\.config\.ts: .*a b/,
    ],
  ])('%s', async (text, message) => {
    expect(await mistake(text)).toMatch(message);
  });

  test('if a file that the configuration imports cannot be parsed', async () => {
    const folder = await folderWith({
      'perdure.config.ts': CONFIG,
      'tools/greet.ts': 'export const tool = {\n',
    });
    await expect(load(folder)).rejects.toThrow(
      `${join(folder, 'tools/greet.ts')}:2:1: syntax error: Unexpected token`,
    );
  });
});
