import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test, vi } from 'vitest';
import { builtTree } from '../support/built-program.js';
import { exportedValues, membersOf } from '../../scripts/reference/declarations.js';
import { ENTRIES } from '../support/entries.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
// Inside the repository, so that imports and `paths` resolve as in its own files.
const folder = join(root, 'node_modules', '.cache', `perdure-examples-${process.pid}`);

// A compiler run takes long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The `@example` blocks of a source file, without the stars and the fences. */
function examplesOf(source: string): readonly string[] {
  const comments = source.match(/\/\*\*(?:(?!\*\/)[\s\S])*@example(?:(?!\*\/)[\s\S])*\*\//g) ?? [];
  return comments.flatMap((comment) => {
    const text = comment.slice(3, -2).replaceAll(/^ *\* ?/gm, '');
    const [, ...blocks] = text.split(/^@example\b/m);
    return blocks.map((block) => (block.split(/^@\w+/m)[0] ?? '').replaceAll(/^```\w*$/gm, ''));
  });
}

/** The TypeScript blocks of a document. */
function snippetsOf(markdown: string): readonly string[] {
  return [...markdown.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code);
}

test('every example in a doc comment or a document is a complete program that compiles', async () => {
  await mkdir(folder, { recursive: true });
  // The test in the tutorial imports the configuration of its first step.
  const [config = ''] = snippetsOf(await readFile(join(root, 'docs', 'tutorial.md'), 'utf8'));
  await writeFile(join(folder, 'perdure.config.ts'), config);
  const pages = (await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md'));
  expect(pages).toContain('graphs.md');
  for (const name of [
    'README.md',
    'skills/perdure/SKILL.md',
    ...pages.map((page) => `docs/${page}`),
  ]) {
    const snippets = snippetsOf(await readFile(join(root, name), 'utf8'));
    const page = name.replaceAll(/[/.]/g, '-');
    // The configuration that the programs of a page import is its own, if it shows one.
    const shown = snippets.findIndex((snippet) => snippet.startsWith('// perdure.config.ts\n'));
    const own = shown < 0 ? 'perdure.config' : `${page}.${shown}`;
    for (const [index, snippet] of snippets.entries()) {
      const file = `${page}.${index}.ts`;
      const linked = snippet.replace(/'\.{1,2}\/perdure\.config\.js'/, `'./${own}.js'`);
      await writeFile(join(folder, file), `${linked}\nexport {};\n`);
    }
  }
  const src = join(root, 'src');
  const names = await readdir(src, { recursive: true });
  let count = 0;
  for (const name of names.filter((path) => path.endsWith('.ts'))) {
    const examples = examplesOf(await readFile(join(src, name), 'utf8'));
    for (const [index, example] of examples.entries()) {
      const file = `${name.replaceAll(/[/\\]/g, '.').replace(/\.ts$/, '')}.${index}.ts`;
      await writeFile(join(folder, file), `${example}\nexport {};\n`);
      count += 1;
    }
  }
  expect(count).toBeGreaterThan(50);
  // The declarations: the type check of the project covers the sources.
  const built = join(await builtTree(), 'dist');
  const paths = Object.fromEntries(
    ENTRIES.map((entry) => [
      entry === 'index' ? 'perdure' : `perdure/${entry}`,
      [join(built, `${entry}.d.ts`)],
    ]),
  );
  const options = {
    noUnusedLocals: false,
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
  };
  const project = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: { ...options, paths },
    include: ['*.ts'],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(project));
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const run = promisify(execFile)(tsc, ['-p', '.'], { cwd: folder });
  const output = await run.then(
    () => '',
    (error: { readonly stdout?: string }) => error.stdout ?? 'tsc could not run',
  );
  expect(output).toBe('');
});

test('every function of an entry point and every method of the client has an example', async () => {
  const built = join(await builtTree(), 'dist');
  const values = ENTRIES.flatMap((entry) => exportedValues(join(built, `${entry}.d.ts`)));
  expect(values.length).toBeGreaterThan(40);
  const client = join(built, 'client');
  const members = [
    ...membersOf(join(client, 'client-types.d.ts'), 'PerdureClient'),
    ...membersOf(join(client, 'control.d.ts'), 'DecisionMethods'),
    ...membersOf(join(client, 'control.d.ts'), 'ControlMethods'),
    ...membersOf(join(client, 'read-methods.d.ts'), 'ReadMethods'),
    ...membersOf(join(client, 'schedule', 'methods.d.ts'), 'Schedules'),
  ];
  const lacking = [...values, ...members].filter(({ comment }) => !comment.includes('@example'));
  expect(lacking.map(({ name }) => name)).toEqual([]);
});
