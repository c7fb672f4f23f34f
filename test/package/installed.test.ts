import { randomUUID } from 'node:crypto';
import { cp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { freshProject, type FreshProject } from '../support/packed-package.js';

const sources = fileURLToPath(new URL('./own-worker', import.meta.url));
const address = inject('temporalAddress');
let project: FreshProject;

beforeAll(async () => {
  project = await freshProject(sources);
  const program = `${(await entryImports()).join('\n')}\nexport { e0 };\n`;
  await writeFile(join(project.folder, 'src', 'entries.ts'), program);
});
afterAll(async () => await rm(project.folder, { recursive: true, force: true }));

/** A line for each entry point of the package, which imports all of it. */
async function entryImports(): Promise<readonly string[]> {
  const path = join(project.folder, 'node_modules/perdure/package.json');
  const { exports: entries } = JSON.parse(await readFile(path, 'utf8'));
  return Object.keys(entries)
    .filter((name) => !name.endsWith('.json'))
    .map((name, at) => `import * as e${at} from '${name.replace(/^\./, 'perdure')}';`);
}

describe('the installed package', () => {
  test('adds agents to a worker of a fresh project: types, workflows, a run and its replay', async () => {
    const { compile, run, folder } = project;
    const queue = `own-${randomUUID()}`;
    // Each entry point is imported, and the declarations of the package are checked as well.
    expect(await compile()).toEqual([]);
    const printed = JSON.parse(await run('node', 'dist/main.js', address, queue));
    expect(printed.outcome).toMatchObject({
      status: 'completed',
      answer: 'It is 42.',
      steps: 2,
      toolCalls: 1,
    });
    expect(printed.greeting).toBe('HELLO YOU');
    // The project's own workflows keep their stack traces.
    expect(printed.stack).toContain('workflows');

    const history = await run('perdure', 'export', `${queue}-agent`, '--address', address);
    await writeFile(join(folder, 'run.json'), history);
    expect(await run('perdure', 'replay', 'run.json')).toMatch(/^ok +run\.json · \d+ events\n$/);
  });

  test('makes a bundle of its own where the SDK is not the one of the prebuilt bundle', async () => {
    const { run, folder } = project;
    const record = join(folder, 'node_modules/perdure/dist/workflow-bundle.json');
    const sdk = await readFile(record, 'utf8');
    expect(JSON.parse(sdk)).toEqual({ sdk: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
    const bundle = join(folder, 'node_modules/perdure/dist/workflow-bundle.js');
    const code = await readFile(bundle, 'utf8');
    await writeFile(record, JSON.stringify({ sdk: '0.0.1' }));
    await writeFile(bundle, 'throw new Error("the prebuilt bundle was used")');
    try {
      expect(await run('perdure', 'replay', 'run.json')).toMatch(/^ok +run\.json/);
    } finally {
      await writeFile(record, sdk);
      await writeFile(bundle, code);
    }
  });

  test('refuses to start with two copies of the SDK, and names both', async () => {
    const { run, folder } = project;
    const nested = join(folder, 'node_modules/perdure/node_modules/@temporalio');
    const original = dirname(await realpath(join(folder, 'node_modules/@temporalio/workflow')));
    for (const name of ['workflow', 'activity']) {
      await cp(join(original, name), join(nested, name), { recursive: true });
      // A copy finds what the original does.
      await symlink(dirname(original), join(nested, name, 'node_modules'));
    }
    try {
      const failed = run('node', 'dist/main.js', address, `two-${randomUUID()}`);
      const error = String(await failed.catch((thrown: unknown) => thrown));
      expect(error).toContain('SdkCopiesError');
      expect(error).toContain(original);
      expect(error).toContain(nested);
    } finally {
      await rm(nested, { recursive: true });
    }
  });

  test('brings each entry point, and a configuration may import them all', async () => {
    const { run, folder } = project;
    const imports = await entryImports();
    await writeFile(join(folder, 'entries.mjs'), imports.join('\n'));
    await run('node', 'entries.mjs');
    const config = [
      ...imports,
      "import { defineAgent, defineConfig } from 'perdure';",
      "import { today } from 'perdure/tools';",
      "const a = defineAgent({ name: 'a', instructions: 'x', tools: [today()] });",
      'export default defineConfig({ agents: [a] });',
    ];
    await writeFile(join(folder, 'perdure.config.ts'), config.join('\n'));
    const listed = await run('perdure', 'list', '--json', '--address', address);
    expect(JSON.parse(listed)).toMatchObject({ rows: expect.any(Array) });
  });

  test('has docs, examples, and source maps that need no other file', async () => {
    const root = join(project.folder, 'node_modules/perdure');
    const files = await readdir(root, { recursive: true });
    expect(files).toContain(join('docs', 'mcp.md'));
    // What `docker compose --file node_modules/perdure/docker-compose.yml` needs.
    for (const file of ['docker-compose.yml', 'Dockerfile', '.dockerignore']) {
      expect(files).toContain(file);
    }
    for (const file of ['setup.sh', 'worker-health.js', 'dynamicconfig/perdure.yaml']) {
      expect(files).toContain(join('docker', file));
    }
    expect(files).toContain(join('examples', 'classifier', 'perdure.config.ts'));
    const maps = files.filter((path) => path.endsWith('.js.map'));
    expect(maps.length).toBeGreaterThan(200);
    for (const path of maps) {
      const { sources: names, sourcesContent: texts = [] } = JSON.parse(
        await readFile(join(root, path), 'utf8'),
      );
      expect(texts.filter((text: unknown) => typeof text === 'string')).toHaveLength(names.length);
    }
  });
});
