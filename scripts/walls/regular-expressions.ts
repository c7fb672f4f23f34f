import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { sourceFiles } from './imports.js';

/** A regular expression in the sources. */
export interface FoundExpression {
  /** The file, relative to `src/`, and its line. */
  readonly at: string;
  readonly file: string;
  readonly source: string;
  readonly flags: string;
}

/** The regular expressions of a folder: literals, and calls of `RegExp` with their source text. */
export interface FoundExpressions {
  readonly literals: readonly FoundExpression[];
  readonly built: readonly FoundExpression[];
}

/** Returns every regular expression of every file below a `src` folder. */
export function expressionsOf(src: string): FoundExpressions {
  const found = sourceFiles(src).map((file) =>
    expressionsIn(file, readFileSync(join(src, file), 'utf8')),
  );
  return {
    literals: found.flatMap(({ literals }) => literals),
    built: found.flatMap(({ built }) => built),
  };
}

/** Returns the regular expressions of a source text. */
export function expressionsIn(file: string, text: string): FoundExpressions {
  const literals: FoundExpression[] = [];
  const built: FoundExpression[] = [];
  visit(parseSync(file, text).program, (node) => {
    const at = `${file}:${text.slice(0, Number(node['start'])).split('\n').length}`;
    const regex = isNode(node['regex']) ? node['regex'] : null;
    const name = isNode(node['callee']) ? node['callee']['name'] : null;
    if (node['type'] === 'Literal' && regex !== null) {
      literals.push({ at, file, source: String(regex['pattern']), flags: String(regex['flags']) });
    } else if (/^(New|Call)Expression$/.test(String(node['type'])) && name === 'RegExp') {
      const source = text.slice(Number(node['start']), Number(node['end']));
      built.push({ at, file, source, flags: '' });
    }
  });
  return { literals, built };
}

type SyntaxNode = Readonly<Record<string, unknown>>;

function visit(node: unknown, see: (node: SyntaxNode) => void): void {
  if (Array.isArray(node)) {
    for (const child of node) visit(child, see);
  } else if (isNode(node)) {
    see(node);
    for (const child of Object.values(node)) visit(child, see);
  }
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null;
}
