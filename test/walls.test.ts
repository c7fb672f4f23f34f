import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { folderOf, importsOf, sourceFiles, type Import } from '../scripts/walls/imports.js';
import { datesIn } from '../scripts/walls/dates.js';
import { ENTRIES, WALLS } from '../scripts/walls/table.js';
import { wallFiles } from '../scripts/write-walls.js';
import { sourceBundle } from './support/bundle.js';

const ROOT = new URL('../', import.meta.url).pathname;
const SRC = join(ROOT, 'src');
/** Read once, because it takes seconds. */
const IMPORTS = importsOf(SRC);
const run = promisify(execFile);

const byFolder = new Map(WALLS.map((wall) => [wall.folder, wall]));
const temporary: string[] = [];

afterAll(async () => {
  for (const folder of temporary) await rm(folder, { recursive: true, force: true });
});

/** Imports that the table does not allow. */
function refused(imports: readonly Import[]): readonly string[] {
  return imports.flatMap(({ from, to, isPackage }) => {
    const folder = folderOf(from);
    const wall = byFolder.get(folder);
    if (wall === undefined) return ENTRIES.includes(folder) ? [] : [`${folder}: not in the table`];
    const allowed = isPackage
      ? wall.packages.includes(to)
      : folderOf(to) === folder || wall.folders.includes(folderOf(to));
    return allowed ? [] : [`${from} -> ${to}`];
  });
}

/** A folder with these files below the lint configuration. */
async function withFiles(files: readonly Attempt[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-walls-'));
  temporary.push(folder);
  const config = JSON.parse(readFileSync(join(ROOT, '.oxlintrc.json'), 'utf8'));
  const { options: _typeAware, $schema: _schema, ...plain } = config;
  writeFileSync(join(folder, '.oxlintrc.json'), JSON.stringify(plain));
  for (const { file, text } of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), `${text}\n`);
  }
  return folder;
}

async function lint(folder: string): Promise<string> {
  const oxlint = join(ROOT, 'node_modules/.bin/oxlint');
  return await run(oxlint, ['--format', 'unix', '.'], { cwd: folder }).then(
    () => '',
    (error: { stdout?: string }) => error.stdout ?? '',
  );
}

describe('the table of walls', () => {
  test('allows every import of the sources, including type-only ones', () => {
    expect(IMPORTS.length).toBeGreaterThan(1_000);
    expect(refused(IMPORTS)).toEqual([]);
  });

  test('allows private parts of the SDK in one file only', () => {
    const users = sourceFiles(SRC).filter((path) =>
      /'@temporalio\/[\w-]+\/lib\b/.test(readFileSync(join(SRC, path), 'utf8')),
    );
    expect(users).toEqual(['temporal/sdk-internals.ts']);
  });

  test('names every folder that exists, and no other', () => {
    const folders = new Set(sourceFiles(SRC).map(folderOf));
    expect([...folders].toSorted()).toEqual([...byFolder.keys(), ...ENTRIES].toSorted());
  });

  test('lets a folder import only folders before it, so there is no cycle', () => {
    const order = WALLS.map(({ folder }) => folder);
    const upward = WALLS.flatMap(({ folder, folders }) =>
      folders.filter((other) => order.indexOf(other) >= order.indexOf(folder)),
    );
    expect(upward).toEqual([]);
  });

  test('allows nothing that no file needs', () => {
    const used = new Set(
      IMPORTS.map(({ from, to, isPackage }) => {
        return `${folderOf(from)} -> ${isPackage ? to : folderOf(to)}`;
      }),
    );
    const unused = WALLS.flatMap(({ folder, folders, packages }) =>
      [...folders, ...packages].map((to) => `${folder} -> ${to}`).filter((each) => !used.has(each)),
    );
    expect(unused).toEqual([]);
  });

  test('matches the lint configuration and ARCHITECTURE.md (npm run walls)', async () => {
    for (const [name, text] of Object.entries(await wallFiles())) {
      expect(readFileSync(join(ROOT, name), 'utf8')).toBe(text);
    }
  });
});

function linesOf(path: string): number {
  return readFileSync(join(SRC, path), 'utf8').split('\n').length - 1;
}

describe('the sources', () => {
  test('have at most 15 levels of folders', () => {
    const levels = new Map<string, number>();
    const imports = IMPORTS.filter(({ isPackage }) => !isPackage);
    const levelOf = (folder: string): number => {
      const known = levels.get(folder);
      if (known !== undefined) return known;
      const below = imports
        .filter(({ from, to }) => folderOf(from) === folder && folderOf(to) !== folder)
        .map(({ to }) => folderOf(to));
      const level = 1 + Math.max(0, ...[...new Set(below)].map(levelOf));
      levels.set(folder, level);
      return level;
    };
    expect(
      Math.max(...sourceFiles(SRC).map((path) => levelOf(folderOf(path)))),
    ).toBeLessThanOrEqual(15);
  });

  test('have no folder with more than 32 files', () => {
    const counts = new Map<string, number>();
    for (const path of sourceFiles(SRC)) {
      counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
    }
    expect([...counts].filter(([, count]) => count > 32)).toEqual([]);
  });

  test('have no small file with a single importer in its own folder', () => {
    const importers = new Map<string, Set<string>>();
    for (const { from, to } of IMPORTS) {
      importers.set(to, (importers.get(to) ?? new Set()).add(from));
    }
    const mergeable = sourceFiles(SRC).filter((path) => {
      const [only, ...others] = importers.get(path) ?? [];
      if (only === undefined || others.length > 0 || dirname(only) !== dirname(path)) return false;
      const lines = linesOf(path);
      // Merged, the two would be longer than a file may be.
      return lines < 60 && lines + linesOf(only) <= 400;
    });
    expect(mergeable).toEqual([]);
  });
});

/** Returns every import cycle, each as the files in it. Type-only imports count. */
function fileCycles(imports: readonly Import[]): readonly (readonly string[])[] {
  const next = new Map<string, string[]>();
  for (const { from, to, isPackage } of imports) {
    if (!isPackage) next.set(from, [...(next.get(from) ?? []), to]);
  }
  const reachable = (file: string): ReadonlySet<string> => {
    const found = new Set<string>();
    const open = [...(next.get(file) ?? [])];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (found.has(at)) continue;
      found.add(at);
      open.push(...(next.get(at) ?? []));
    }
    return found;
  };
  const reached = new Map([...next.keys()].map((file) => [file, reachable(file)]));
  const reaches = (one: string, other: string): boolean => reached.get(one)?.has(other) ?? false;
  const cycles = [...next.keys()]
    .filter((file) => reaches(file, file))
    .map((file) =>
      [...next.keys()].filter((other) => reaches(file, other) && reaches(other, file)),
    );
  return cycles.filter(([first], index) => cycles.findIndex(([one]) => one === first) === index);
}

describe('the files', () => {
  test('have no import cycle, type-only imports included', () => {
    expect(fileCycles(IMPORTS)).toEqual([]);
  });

  test('of a cycle are found', () => {
    const pairs = ['a b', 'b c', 'c b', 'c d', 'd d', 'e a'].map((pair) => pair.split(' '));
    const planted = pairs.map(([from = '', to = '']) => ({ from, to, isPackage: false }));
    expect(fileCycles(planted)).toEqual([['b', 'c'], ['d']]);
  });
});

interface Attempt {
  readonly file: string;
  readonly text: string;
}

/** Imports and calls that are not allowed. */
const ATTEMPTS: readonly Attempt[] = [
  ...[
    "import { findPrice } from '../models/known-models.js';\nexport const x = findPrice;",
    "import type { Model } from '../models/model.js';\nexport type X = Model;",
    "import { attempt } from '../live/attempt.js';\nexport const x = attempt;",
    "import { startStub } from '../testing/stub-server.js';\nexport const x = startStub;",
    "export { openClient } from '../client/create-client.js';",
    "export const x = () => import('../storage/blob-store.js');",
    "import { createWorker } from '../index.js';\nexport const x = createWorker;",
    "import { z } from 'zod';\nexport const x = z;",
    "import { createHash } from 'node:crypto';\nexport const x = createHash;",
    "import fs from 'fs';\nexport const x = fs;",
    "import { readFile } from 'fs/promises';\nexport const x = readFile;",
    "import ms from 'ms';\nexport const x = ms;",
    "import type { Other } from '@noble/other';\nexport type X = Other;",
    "export { x } from 'os';",
    "export const x = () => import('path');",
    "import { Client } from '@temporalio/client';\nexport const x = Client;",
    'export const now = () => Date.now();',
    'export const now = () => globalThis.Date.now();',
    "export const now = () => globalThis['Date'].now();",
    "export const x = Math['random']();",
    'const { random } = Math;\nexport const x = random();',
    'export const x = (n: number) => n.toLocaleString();',
    "export const x = (a: string) => a.localeCompare('b');",
    'export const x = () => Intl.DateTimeFormat().resolvedOptions().timeZone;',
    'export const x = (o: object) => new WeakRef(o);',
    'export const x = new FinalizationRegistry(() => undefined);',
  ].flatMap((text) => [{ file: 'src/core/attempt.ts', text }]),
  {
    file: 'src/core/calls/attempt.ts',
    text: "import { m } from '../../models/model.js';\nexport const x = m;",
  },
  ...['storage', 'agents', 'client', 'history', 'live', 'cli', 'activities', 'models', 'tools'].map(
    (folder) => ({
      file: 'src/workflows/attempt.ts',
      text: `import type { X } from '../${folder}/x.js';\nexport type Y = X;`,
    }),
  ),
  ...[
    'export const now = () => globalThis.Date.now();',
    'export const x = (o: object) => new WeakRef(o);',
    'export const x = (at: Date) => at.toLocaleTimeString();',
    'export const x = (at: Date) => at.getHours();',
    'export const x = (at: Date) => at.setHours(0);',
    'export const x = (at: Date) => at.setMonth(0);',
    'export const x = (at: { getYear(): number }) => at.getYear();',
    "export const x = Date.parse('2026-01-01 10:00');",
    'export const x = (at: { startTime: unknown }) => String(at.startTime);',
  ].map((text) => ({ file: 'src/workflows/attempt.ts', text })),
  ...['client', 'agents', 'cli'].map((folder) => ({
    file: 'src/models/attempt.ts',
    text: `import { x } from '../${folder}/x.js';\nexport const y = x;`,
  })),
  {
    file: 'src/client/attempt.ts',
    text: "import { x } from '../cli/x.js';\nexport const y = x;",
  },
  {
    file: 'src/storage/attempt.ts',
    text: "import { x } from '../cli/x.js';\nexport const y = x;",
  },
  ...[
    "import fs from 'fs';\nexport const y = fs;",
    "import ms from 'ms';\nexport const y = ms;",
  ].map((text) => ({ file: 'src/tools/attempt.ts', text })),
  {
    file: 'src/tools/attempt.ts',
    text: "import OpenAI from 'openai';\nexport const y = OpenAI;",
  },
];

describe('an import or call that is not allowed', () => {
  // Each has a file of its own, and one run of the linter reads them all.
  const attempts = ATTEMPTS.map(({ file, text }, index) => ({
    file: file.replace('attempt', `attempt-${index}`),
    text,
  }));
  let folder = '';
  let report: readonly string[] = [];
  beforeAll(async () => {
    folder = await withFiles(attempts);
    report = (await lint(folder)).split('\n');
  });

  test.each(attempts)('is refused by the lint: $file: $text', ({ file }) => {
    const found = report.filter((line) => line.includes(`${file}:`)).join('\n');
    expect(found).toMatch(/no-restricted-(imports|globals|properties)/);
  });

  test('is found among all imports', () => {
    const expected = attempts
      .filter(({ text }) => text.includes("from '.") || text.includes('import('))
      .map(({ file }) => file.replace('src/', ''));
    const found = refused(importsOf(join(folder, 'src'))).map((line) => line.split(' -> ')[0]);
    expect(found).toEqual(expect.arrayContaining(expected));
  });
});

/** Times of the machine's time zone that the lint cannot see. */
const LOCAL_TIMES = [
  'export const x = (at: Date) => at.toString();',
  'export const x = (at: Date) => `${at}`;',
  'export const x = new Date(2026, 0, 1);',
  "export const x = new Date('2026-01-01 10:00').getTime();",
  "export const x = Date.parse('2026-01-01 10:00');",
  'const Clock = Date;\nexport const x = () => new Clock();',
  'export const x = () => [Date.now(), Date()];',
];

describe('a workflow has no dates, only Unix times', () => {
  test('in the sources', () => {
    const found = sourceFiles(SRC)
      .filter((path) => ['core', 'workflows'].includes(folderOf(path)))
      .flatMap((path) => datesIn(join(SRC, path)).map((line) => `${path}: ${line}`));
    // In UTC, and made of numbers.
    const at = 'return new Date(at).toISOString();';
    const until = 'const summary = `wait until ${new Date(until).toISOString()}`;';
    expect(found).toEqual([`core/requests/undo-text.ts: ${at}`, `workflows/effects.ts: ${until}`]);
  });

  test('or they are found', async () => {
    const given = LOCAL_TIMES.map((text, index) => ({ file: `attempt-${index}.ts`, text }));
    const folder = await withFiles(given);
    const missed = given.filter(({ file }) => datesIn(join(folder, file)).length === 0);
    expect(missed).toEqual([]);
    const now = { file: 'now.ts', text: '/** A Date. */\nexport const x = () => Date.now();' };
    expect(datesIn(join(await withFiles([now]), now.file))).toEqual([]);
  });
});

test('the wire layer of models knows no provider, and each SDK has one importer', () => {
  const places = IMPORTS.filter(({ to }) => ['openai', '@anthropic-ai/sdk'].includes(to)).map(
    ({ from, to }) => `${to} in ${dirname(from)}`,
  );
  expect(new Set(places)).toEqual(
    new Set(['openai in models/openai', '@anthropic-ai/sdk in models/anthropic']),
  );
  const upward = IMPORTS.filter(({ from }) => dirname(from) === 'models/wire')
    .map(({ to }) => to)
    .filter((to) => /^models\/(?!wire\/).*\//.test(to));
  expect(upward).toEqual([]);
});

test('only workflows/activities.ts has timeouts and retries of activities', () => {
  const found = sourceFiles(SRC).filter((path) =>
    /\bproxy(Local)?Activities\b/.test(readFileSync(join(SRC, path), 'utf8')),
  );
  expect(found).toEqual(['workflows/activities.ts']);
});

/** Packages that only cost those who use them. */
const LAZY = [
  '@anthropic-ai/sdk',
  '@aws-sdk/client-s3',
  '@modelcontextprotocol/client',
  'jiti',
  'log-update',
];

test.each(LAZY)('%s is loaded on demand, and not before', (name) => {
  const importers = IMPORTS.filter(({ to }) => to === name).map(({ from }) => from);
  expect(importers).not.toEqual([]);
  const loaded = new RegExp(`^(?:import|export) (?!type )[^;]*from '${name}[/']`, 'm');
  const early = importers.filter((path) => loaded.test(readFileSync(join(SRC, path), 'utf8')));
  expect(early).toEqual([]);
});

describe('the workflow bundle', () => {
  /** Everything that a workflow bundle may contain, by package and by folder of `src/`. */
  const ALLOWED =
    /^(node_modules\/(@temporalio|@noble\/hashes|nexus-rpc|long|ms)\/|dist\/(core|workflows)\/)/;

  test('contains core, workflows, and the SDK, and nothing else', async () => {
    const bundle = await sourceBundle();
    const code = 'code' in bundle ? bundle.code : '';
    const modules = new Set(code.match(/(?<="\.\/)(?:node_modules|dist)\/[@\w./-]+\.[jt]s(?=")/g));
    expect([...modules].filter((path) => path.includes('dist/core/')).length).toBeGreaterThan(20);
    expect([...modules].filter((path) => !ALLOWED.test(path))).toEqual([]);
  });

  test('stays small: each cached run pays for it', async () => {
    const bundle = await sourceBundle();
    // The SDK's own share is about 0.9 MB, without source maps.
    const code = ('code' in bundle ? bundle.code : '').replace(/\/\/# sourceMappingURL=.*/g, '');
    expect(code.length).toBeLessThan(1_800_000);
  });
});
