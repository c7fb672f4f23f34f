import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RUN_STATUSES } from '../src/core/state/status.js';
import { ERROR_CODES } from '../src/cli/context.js';

const ROOT = new URL('../', import.meta.url).pathname;
const SKIPPED = new Set(['node_modules', 'dist', '.git']);

/** Paths of all files of the repository with this ending, relative to its root. */
function filesOf(ending: string, folder = ''): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : filesOf(ending, path);
    return entry.name.endsWith(ending) ? [path] : [];
  });
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const DOCUMENTS = filesOf('.md');
const TESTS = new Map(
  filesOf('.ts', 'test').map((path) => [path, read(path).replaceAll(/\\(['`])/g, '$1')]),
);

/** The text without fenced blocks. */
function proseOf(document: string): string {
  return read(document).replaceAll(/^```[\s\S]*?^```$/gm, '');
}

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsOf(document: string): readonly string[] {
  return [...proseOf(document).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{Letter}\p{Number}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Paths in backticks that look like files or folders of the repository. */
function pathsIn(document: string): readonly string[] {
  const spans = [...proseOf(document).matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span);
  return spans.filter((span) => /^[\w.-]+(?:\/[\w.-]+)*(?:\.(?:ts|js|json|md|yml)|\/)$/.test(span));
}

describe('the README', () => {
  test('begins with the command that does the main job, and then the one that runs the tests', () => {
    const blocks = [...read('README.md').matchAll(/^```\w*\n([\s\S]*?)^```$/gm)];
    const [first, second] = blocks.map(([, block = '']) => block.trim());
    expect(first).toMatch(/^npm ci && npm start -- run files "[^"]+"$/);
    expect(second).toBe('npm ci && npm run check');
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(150);
  });

  test('is read in three minutes, at 238 words a minute, without its code', () => {
    const prose = proseOf('README.md')
      .replaceAll(/!\[[^\]]*\]\([^)]*\)/g, '')
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    const words = prose.split(/\s+/).filter((word) => /[\p{Letter}\p{Number}]/u.test(word));
    expect(words.length).toBeGreaterThan(400);
    expect(words.length).toBeLessThan(700);
  });
});

test('ARCHITECTURE.md has at most 4,000 words, with the bars of its tables', () => {
  expect(read('ARCHITECTURE.md').trim().split(/\s+/).length).toBeLessThanOrEqual(4000);
});

describe('the documents', () => {
  test('link to files and headings that exist', () => {
    const broken = DOCUMENTS.flatMap((document) =>
      [...proseOf(document).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
        if (/^\w+:/.test(link)) return [];
        const [path = '', anchor] = link.split('#');
        const target = path === '' ? document : join(dirname(document), path);
        if (!existsSync(join(ROOT, target))) return [`${document}: ${link}`];
        const isFound = anchor === undefined || anchorsOf(target).includes(anchor);
        return isFound ? [] : [`${document}: ${link}`];
      }),
    );
    expect(broken).toEqual([]);
  });

  test('link to files that the package contains', () => {
    const { files } = JSON.parse(read('package.json')) as { readonly files: readonly string[] };
    const isShipped = (path: string): boolean => files.includes(path.split('/')[0] ?? '');
    const missing = DOCUMENTS.filter(isShipped).flatMap((document) =>
      [...proseOf(document).matchAll(/\]\(([^)\s#]+)[^)\s]*\)/g)].flatMap(([, link = '']) => {
        const target = join(dirname(document), link);
        return /^\w+:/.test(link) || isShipped(target) ? [] : [`${document}: ${link}`];
      }),
    );
    expect(missing).toEqual([]);
  });

  test('name source files that exist, relative to the repository or to src/', () => {
    const names = new Set(filesOf('.ts', 'src').map((path) => basename(path)));
    // Files that perdure or its user makes.
    const made = new Set(['server.json', 'perdure.config.ts', '.npmrc', 'package.json']);
    const documents = DOCUMENTS.filter((path) =>
      /^(?:ARCHITECTURE|CONTRIBUTING)\.md$|^docs\/decisions\//.test(path),
    );
    const missing = documents.flatMap((document) =>
      pathsIn(document)
        .filter((path) => {
          if (made.has(path) || (!path.includes('/') && names.has(path))) return false;
          return !['', 'src'].some((folder) => existsSync(resolve(ROOT, folder, path)));
        })
        .map((path) => `${document}: ${path}`),
    );
    expect(missing).toEqual([]);
  });
});

test('the TypeScript of the documents is fenced as `ts` where it uses perdure, so that tests run it', () => {
  const pages = DOCUMENTS.filter((path) => !path.startsWith('docs/reference/'));
  const untested = pages.flatMap((document) => {
    const blocks = [...read(document).matchAll(/^ *```(\w+)\n([\s\S]*?)^ *```$/gm)];
    return blocks
      .filter(([, language = '']) => !['ts', 'tsx'].includes(language))
      .filter(([, , code = '']) => /^ *import .* from '(?:\.\/)?perdure\b/m.test(code))
      .map(([block]) => `${document}: ${block}`);
  });
  expect(untested).toEqual([]);
});

test('the pages for those who come from another library name the versions that are executed', () => {
  const versionIn = (folder: string, name: string): string => {
    const lock = JSON.parse(read(join(folder, 'package-lock.json'))) as {
      readonly packages: Readonly<Record<string, { readonly version: string } | undefined>>;
    };
    return lock.packages[`node_modules/${name}`]?.version ?? 'none';
  };
  const ports = 'bench/ports';
  const [, llamabot = 'none'] = read(`${ports}/requirements.txt`).match(/^llamabot==(.+)$/m) ?? [];
  const executed = {
    langgraph: [versionIn(ports, '@langchain/langgraph'), versionIn(ports, '@langchain/openai')],
    'ai-sdk': [versionIn('', 'ai'), versionIn('', '@ai-sdk/openai')],
    'openai-agents': [versionIn(ports, '@openai/agents')],
    mastra: [versionIn(ports, '@mastra/core')],
    llamabot: [llamabot],
    temporal: [versionIn('', '@temporalio/worker')],
  };
  const unnamed = Object.entries(executed).flatMap(([page, versions]) => {
    const text = read(`docs/coming-from-${page}.md`);
    return versions.filter((one) => !text.includes(one)).map((one) => `${page}: ${one}`);
  });
  expect(unnamed).toEqual([]);
});

describe('the recipes of CONTRIBUTING.md', () => {
  const [, recipes = ''] = read('CONTRIBUTING.md').split('\n## Recipes\n');
  const rows = [...recipes.matchAll(/^\| `([\w./-]+)` +\| `(\w+)` /gm)];

  test('say how to add each kind of thing', () => {
    const titles = [...recipes.matchAll(/^### Add an? (.+)$/gm)].map(([, title]) => title);
    expect(titles).toEqual(['limit', 'activity', 'kind of node', 'provider', 'command']);
    expect(rows.length).toBeGreaterThan(12);
  });

  test('need two files for a kind of node: one of the engine, one of the authors', () => {
    const [, recipe = ''] = recipes.split('### Add a kind of node');
    const files = recipe.split('\n### ')[0]?.match(/^\| `src\/\S+`/gm) ?? [];
    expect(files).toHaveLength(2);
  });

  test.each(rows.map(([, file = '', symbol = '']) => [file, symbol]))(
    '%s has %s',
    (file, symbol) => {
      expect(read(file)).toMatch(new RegExp(`\\b${symbol}\\b`));
    },
  );
});

describe('docs/command.md', () => {
  test('has the table of statuses as the code has it', () => {
    const [, section = ''] = read('docs/command.md').split('## Statuses');
    const [table = ''] = section.split('\n## ');
    const rows = [...table.matchAll(/^\| `(\w+)` +\| (.*?) +\|$/gm)].map(([, ...row]) => row);
    expect(rows).toEqual(Object.entries(RUN_STATUSES));
  });

  test('lists every code of an error, and no other', () => {
    const [, section = ''] = read('docs/command.md').split('## Errors as JSON');
    const [table = ''] = section.split('\n## ');
    const listed = [...table.matchAll(/^\| `(\w+)` /gm)].map(([, code]) => code);
    expect(listed).toEqual(ERROR_CODES.toSorted());
  });
});

describe('docs/acceptance.md', () => {
  const rows = read('docs/acceptance.md')
    .split('\n')
    .filter((line) => /^\| T-\d\d /.test(line));

  test('has a row for each of the 60 scenarios', () => {
    const numbers = Array.from({ length: 60 }, (_, at) => `T-${String(at + 1).padStart(2, '0')}`);
    expect(rows.map((row) => row.slice(2, 6))).toEqual(numbers);
  });

  test('names tests that exist, by file and title', () => {
    const missing = rows.flatMap((row) => {
      let file = '';
      return [...row.matchAll(/`([^`]+)`|A\/([\w-]+)/g)].flatMap(([, span, acceptance]) => {
        if (acceptance !== undefined) file = `test/acceptance/${acceptance}.test.ts`;
        else if (span?.startsWith('test/')) file = span;
        const text = TESTS.get(file);
        if (text === undefined) return span?.startsWith('test/') ? [span] : [];
        const isTitle = span !== undefined && span !== file && file !== '';
        return isTitle && !text.includes(span.replace(/ ?…$/, '')) ? [`${file}: ${span}`] : [];
      });
    });
    expect(missing).toEqual([]);
  });
});
