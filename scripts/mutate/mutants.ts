import { changesOf, type Change } from './changes.js';
import { childrenOf, parse, type Node } from './syntax.js';

/** A small change of the source that a test has to detect. */
export interface Mutant {
  readonly id: number;
  readonly file: string;
  readonly line: number;
  /** For display: the code before and after. */
  readonly what: string;
  /** The code runs when its module is loaded, so the module has to be loaded again. */
  readonly isStatic: boolean;
}

/**
 * Rewrites a module so that each mutant of it can be switched on while it runs: an expression becomes
 * `__m(7) ? mutated : original`. Returns the new code, and the mutants numbered from `firstId`.
 */
export function instrument(
  file: string,
  source: string,
  firstId: number,
): { readonly code: string; readonly mutants: readonly Mutant[] } {
  const program = parse(file, source);
  const changes = changesOf(program, source);
  const numbers = new Map(changes.map((change, index) => [change, firstId + index]));
  const byNode = new Map<Node, Change[]>();
  for (const change of changes) {
    byNode.set(change.node, [...(byNode.get(change.node) ?? []), change]);
  }

  const parts = (node: Node): string => {
    let code = '';
    let at = node.start;
    for (const child of childrenOf(node)) {
      // A shorthand property has the same node twice.
      if (child.start < at) continue;
      code += source.slice(at, child.start) + render(child);
      at = child.end;
    }
    return code + source.slice(at, node.end);
  };
  const render = (node: Node): string => {
    const own = byNode.get(node) ?? [];
    const [first] = own;
    if (first === undefined) return parts(node);
    if (node.type === 'ExpressionStatement') {
      return `if (!__m(${numbers.get(first)})) { ${parts(node)} }`;
    }
    const original = `(${parts(node)})`;
    return own.reduceRight(
      (rest, change) => `(__m(${numbers.get(change)}) ? ${change.code} : ${rest})`,
      original,
    );
  };
  const mutants = changes.map((change): Mutant => {
    const { node, isStatic, code } = change;
    const line = source.slice(0, node.start).split('\n').length;
    const before = source.slice(node.start, node.end);
    const what = `${short(before)} → ${code === '' ? 'nothing' : short(code)}`;
    return { id: numbers.get(change) ?? 0, file, line, what, isStatic };
  });
  return { code: render(program), mutants };
}

function short(code: string): string {
  const line = code.replaceAll(/\s+/g, ' ');
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}
