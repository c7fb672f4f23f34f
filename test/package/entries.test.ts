import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { builtTree } from '../support/built-program.js';
import { exportedDeclarations } from '../../scripts/reference/declarations.js';
import { ENTRIES } from '../support/entries.js';

const run = promisify(execFile);

/** What each entry exports: a name that joins or leaves an entry also changes this list. */
const NAMES: Readonly<Record<string, readonly string[]>> = JSON.parse(
  readFileSync(new URL('./entry-names.json', import.meta.url), 'utf8'),
);

/** What the first program imports from the root, although its subject is in another entry. */
const IN_ROOT = ['PerdureClient', 'RunningWorker', 'createClient', 'createWorker', 'mcpServer'];
/** A tool of an agent, and what a scripted person does: both are an answer. */
const TWO_MEANINGS = ['answer'];

/** Packages that only a program needs that uses them; commands load them when they do. */
const NEVER_LOADED = [
  '@anthropic-ai/sdk',
  '@aws-sdk/client-s3',
  '@modelcontextprotocol/client',
  '@modelcontextprotocol/server',
  // 50 MB of memory, for workers and replays alone.
  '@temporalio/core-bridge',
  'commander',
  'jiti',
  'log-update',
  'openai',
];

let dist = '';

beforeAll(async () => {
  dist = join(await builtTree(), 'dist');
});

/** The names that an entry exports, sorted by their code units. */
function namesOf(file: string): readonly string[] {
  return exportedDeclarations(join(dist, `${file}.d.ts`))
    .map(({ name }) => name)
    .toSorted();
}

/** Prints the URL of each ES module that is loaded. */
const HOOKS = `
import { writeSync } from 'node:fs';
export async function load(url, context, next) {
  writeSync(1, url + '\\n');
  return await next(url, context);
}`;

/** Imports a module in a process of its own, and returns the packages that are loaded then. */
async function packagesOf(file: string): Promise<readonly string[]> {
  const program = `
import { createRequire, register } from 'node:module';
register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(HOOKS)}));
await import(${JSON.stringify(pathToFileURL(join(dist, file)).href)});
for (const path of Object.keys(createRequire(import.meta.url).cache)) console.log(path);`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program]);
  const names = stdout.split('\n').flatMap((line) => {
    const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(line) ?? [];
    return name ?? [];
  });
  return [...new Set(names)].toSorted();
}

describe('the entries', () => {
  test('export the names of the list, and the root fewer than 80', () => {
    const exported = Object.fromEntries(ENTRIES.map((file) => [file, namesOf(file)]));
    expect(exported).toEqual(NAMES);
    expect(NAMES['index']?.length).toBeLessThan(80);
  });

  test('have each name once, but for the first program and for workflow code', () => {
    const entriesOf = new Map<string, readonly string[]>();
    for (const file of ENTRIES) {
      for (const name of NAMES[file] ?? []) {
        entriesOf.set(name, [...(entriesOf.get(name) ?? []), file]);
      }
    }
    const shared = [...entriesOf].filter(([, files]) => files.length > 1);
    // Workflow code imports its types without those of Node.
    const others = shared.filter(([, files]) => !files.includes('workflow'));
    expect(others.map(([name]) => name).toSorted()).toEqual(
      [...IN_ROOT, ...TWO_MEANINGS].toSorted(),
    );
  });

  // vitest can be loaded by a test only.
  const ALONE = ENTRIES.filter((file) => file !== 'vitest');
  test.each(ALONE)('perdure/%s loads nothing that only some programs need', async (file) => {
    const loaded = await packagesOf(`${file}.js`);
    expect(loaded.filter((name) => NEVER_LOADED.includes(name))).toEqual([]);
  });

  test('of which none loads the command, which loads these packages', async () => {
    expect(await packagesOf('cli/program.js')).toContain('commander');
  });
});

test('a packed package has no script that npm would ask its users about, and a clone is as it was', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-pack-'));
  const manifest = readFileSync('package.json', 'utf8');
  // What is built and written before is not what is tested.
  const quick = manifest.replaceAll(/"(build|llms)": ".*"/g, '"$1": "true"');
  await writeFile(join(folder, 'package.json'), quick);
  await cp('scripts/pack-manifest.js', join(folder, 'scripts/pack-manifest.js'));
  await run('npm', ['pack'], { cwd: folder });
  const [tarball = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  const { stdout } = await run('tar', ['-xzOf', join(folder, tarball), 'package/package.json']);
  const { scripts } = JSON.parse(stdout) as { scripts: Record<string, string> };
  const asked = ['preinstall', 'install', 'postinstall', 'prepare'];
  expect(Object.keys(scripts).filter((name) => asked.includes(name))).toEqual([]);
  expect(await readFile(join(folder, 'package.json'), 'utf8')).toBe(quick);
  expect(JSON.parse(manifest).scripts.prepare).toBe('npm run build');
  await rm(folder, { recursive: true });
});
