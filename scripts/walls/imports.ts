import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { parseSync } from 'oxc-parser';

/** One import of a source file, including type-only imports, re-exports, and `import('…')`. */
export interface Import {
  /** The importing file, relative to `src/`, with `/` between folders. */
  readonly from: string;
  /**
   * The imported file, relative to `src/`, or the name of a package; `node:` for Node's own
   * modules.
   */
  readonly to: string;
  readonly isPackage: boolean;
}

/** Returns all TypeScript files below a `src` folder, relative to it, sorted by name. */
export function sourceFiles(src: string): readonly string[] {
  return readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => path.split(sep).join('/'))
    .toSorted();
}

/** Returns every import of every file below a `src` folder. */
export function importsOf(src: string): readonly Import[] {
  return sourceFiles(src).flatMap((from) =>
    specifiers(join(src, from)).map((specifier) => resolved(from, specifier)),
  );
}

/** Returns the folder of a file: the first folder below `src/`, or the file itself. */
export function folderOf(path: string): string {
  return path.split('/')[0] ?? path;
}

function resolved(from: string, specifier: string): Import {
  if (specifier.startsWith('node:')) return { from, to: 'node:', isPackage: true };
  if (!specifier.startsWith('.')) {
    const parts = specifier.split('/');
    const name = specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier);
    return { from, to: name, isPackage: true };
  }
  const path = relative('/', join('/', dirname(from), specifier));
  return { from, to: path.split(sep).join('/').replace(/\.js$/, '.ts'), isPackage: false };
}

function specifiers(file: string): readonly string[] {
  const { program } = parseSync(file, readFileSync(file, 'utf8'));
  const found: string[] = [];
  visit(program, found);
  return found;
}

/** Every node that imports another module has the module's name in `source`. */
function visit(node: unknown, found: string[]): void {
  if (Array.isArray(node)) {
    for (const each of node) visit(each, found);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  if ('source' in node) {
    const { source } = node;
    if (typeof source === 'object' && source !== null && 'value' in source) {
      if (typeof source.value === 'string') found.push(source.value);
    }
  }
  for (const value of Object.values(node)) visit(value, found);
}
