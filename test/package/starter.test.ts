import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { freshProject, type FreshProject } from '../support/packed-package.js';

const own = fileURLToPath(new URL('./own-worker', import.meta.url));
const testing = fileURLToPath(new URL('../../docs/testing.md', import.meta.url));
const readme = fileURLToPath(new URL('../../README.md', import.meta.url));
const address = inject('temporalAddress');
let project: FreshProject;

beforeAll(async () => {
  project = await freshProject(own);
  for (const name of ['src', 'package.json', 'tsconfig.json']) {
    await rm(join(project.folder, name), { recursive: true });
  }
});
afterAll(async () => await rm(project.folder, { recursive: true, force: true }));

/** The blocks of the page that begin with the path of a file, by path. */
async function filesOf(page: string): Promise<readonly (readonly [string, string])[]> {
  const text = await readFile(page, 'utf8');
  const blocks = [...text.matchAll(/```ts\n\/\/ (\S+\.ts)\n([^]*?)```/g)];
  return blocks.map(([, path = '', code = '']) => [path, code] as const);
}

// Installs, compiles, and runs a project, which takes long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

describe('a folder made by npm init -y', () => {
  test('gets a project from perdure init whose types, first test, and agent work', async () => {
    const { compile, run, folder } = project;
    await run('npm', 'init', '-y');
    await run('perdure', 'init');
    // A program with top-level await, as in the docs.
    const program = `import { createClient } from 'perdure';
import config from './perdure.config.js';
const client = await createClient({ config });
await client.disconnect();
`;
    await writeFile(join(folder, 'main.ts'), program);
    expect(await compile()).toEqual([]);
    await rm(join(folder, 'main.ts'));
    expect(await run('vitest', 'run')).toContain('1 passed');
    const question = 'count_words {"text":"one two three"}';
    const answer = await run('perdure', 'run', 'assistant', question, '--address', address);
    expect(answer).toContain('count_words returned "3".');
    expect(answer).toContain('to call a tool, write its name and arguments');
    // The README replaces the configuration; the first test stays.
    for (const [path, code] of await filesOf(readme)) await writeFile(join(folder, path), code);
    expect(await readFile(join(folder, 'perdure.config.ts'), 'utf8')).toContain("name: 'desk'");
    expect(await run('vitest', 'run')).toContain('1 passed');
  });

  test('runs the files of the testing page, in parallel on one server', async () => {
    const { compile, run, folder } = project;
    const files = await filesOf(testing);
    expect(files.map(([path]) => path)).toContain('vitest.config.ts');
    const clerk = files.find(([path]) => path === 'test/clerk.test.ts');
    for (const [path, code] of [...files, ['test/second.test.ts', clerk?.[1] ?? ''] as const]) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), code);
    }
    // The configuration is that of the README.
    expect(await compile()).toEqual([]);
    expect(await run('vitest', 'run')).toContain('4 passed');
  });
});
