import { CORE_LAYERS, ENTRIES, WALLS, type Wall } from './table.js';

interface Override {
  readonly files: readonly string[];
  readonly rules: Readonly<Record<string, unknown>>;
}

const BEGIN = '<!-- walls: written by `npm run walls` -->';
const END = '<!-- end of walls -->';

/**
 * Returns the lint configuration with the walls as its first overrides; other overrides do not
 * change.
 */
export function withWalls(config: { readonly overrides: readonly Override[] }): object {
  const others = config.overrides.filter(({ rules }) => !('no-restricted-imports' in rules));
  return { ...config, overrides: [...WALLS.map(override), ...others] };
}

function override(wall: Wall): Override {
  const isFile = wall.folder.endsWith('.ts');
  const all = [...WALLS.map(({ folder }) => folder), ...ENTRIES];
  const folders = all.filter((folder) => folder !== wall.folder && !wall.folders.includes(folder));
  const message = `${wall.folder} may import ${mayImport(wall)}. ${wall.why}`;
  return {
    files: [isFile ? `src/${wall.folder}` : `src/${wall.folder}/**`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: `^${isFile ? '\\./' : '(\\.\\./)+'}(${folders.map(asPattern).join('|')})`,
              message,
            },
            { group: ['**', ...RELATIVE, ...wall.packages.flatMap(exceptions)], message },
          ],
        },
      ],
    },
  };
}

/**
 * Everything is refused but these: the files of the sources, whose walls are the other pattern, and
 * the packages of the wall. A package brings its subpaths; Node's modules are imported by `node:` only.
 */
const RELATIVE = ['!./**', '!../**'];

function exceptions(name: string): readonly string[] {
  return name === 'node:' ? ['!node:*', '!node:*/**'] : [`!${name}`, `!${name}/**`];
}

/** Returns the pattern of imports from a folder, or of a file in `src/`, which is imported as JavaScript. */
function asPattern(folder: string): string {
  return folder.endsWith('.ts') ? `${escaped(folder.slice(0, -3))}\\.js$` : `${escaped(folder)}/`;
}

function escaped(text: string): string {
  return text.replaceAll('.', '\\.');
}

function mayImport({ folders, packages }: Wall): string {
  const names = [...folders, ...packages];
  return names.length === 0 ? 'nothing' : names.join(', ');
}

/**
 * Returns a text with the tables of walls and of the core's layers between two markers. Throws if a marker is missing.
 */
export function withTable(text: string): string {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin === -1 || end < begin) throw new Error(`expected the marks ${BEGIN} and ${END}`);
  return `${text.slice(0, begin + BEGIN.length)}\n\n${table()}\n\n${LAYERS}\n\n${layers()}\n\n${text.slice(end)}`;
}

function table(): string {
  const rows = WALLS.map(({ folder, folders, packages, why }) => {
    return [`\`${folder}\``, code(folders), code(packages), why];
  });
  return markdown([['folder', 'folders it may import', 'packages', 'why'], ...rows]);
}

const LAYERS =
  'Within `core`, a folder imports only folders above it in this list, types included (`.`: the files in `core` itself):';

function layers(): string {
  const rows = CORE_LAYERS.map(({ folder, holds }) => [`\`${folder}\``, holds]);
  return markdown([['folder of core', 'what it holds'], ...rows]);
}

function code(names: readonly string[]): string {
  return names.map((name) => (name === 'node:' ? 'Node' : `\`${name}\``)).join(' ') || '–';
}

/** Aligned as Prettier aligns a table, so that formatting changes nothing. */
function markdown(rows: readonly (readonly string[])[]): string {
  const width = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(width[column] ?? 0)).join(' | ')} |`;
  const rule = `| ${width.map((size) => '-'.repeat(size)).join(' | ')} |`;
  const [head = [], ...body] = rows;
  return [line(head), rule, ...body.map(line)].join('\n');
}
