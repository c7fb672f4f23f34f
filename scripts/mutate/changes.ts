import { childrenOf, nodeIn, nodesIn, type Node } from './syntax.js';

/** A change of one node: the code that replaces it; empty for a statement that is removed. */
export interface Change {
  readonly node: Node;
  readonly code: string;
  /** The code runs when its module is loaded. */
  readonly isStatic: boolean;
}

const OPERATORS: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '&&': ['||'],
  '||': ['&&'],
};

/** Returns the changes of a module that its tests have to detect. */
export function changesOf(program: Node, source: string): readonly Change[] {
  const changes: Change[] = [];
  const visit = (node: Node, isStatic: boolean, isArgument: boolean): void => {
    const made = changesHere(node, (of) => source.slice(of.start, of.end));
    changes.push(...made.map(([of, code]) => ({ node: of, code, isStatic })));
    // A function that is passed to a call, as to `filter`, runs when the call does.
    const isLater = node.type.includes('Function') && !isArgument;
    const isCall = node.type === 'CallExpression';
    for (const child of childrenOf(node)) visit(child, isStatic && !isLater, isCall);
  };
  visit(program, true, false);
  return changes;
}

type Text = (node: Node) => string;

function changesHere(node: Node, text: Text): readonly (readonly [Node, string])[] {
  const { type } = node;
  switch (type) {
    case 'IfStatement':
    case 'ConditionalExpression': {
      const test = nodeIn(node, 'test');
      return [
        [test, 'false'],
        [test, 'true'],
      ];
    }
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const [left, right] = [text(nodeIn(node, 'left')), text(nodeIn(node, 'right'))];
      if (node['operator'] === '??') return [[node, right]];
      const others = OPERATORS[String(node['operator'])] ?? [];
      return others.map((operator) => [node, `(${left} ${operator} ${right})`]);
    }
    case 'UnaryExpression':
      if (node['operator'] !== '!') return [];
      return [[node, `!!(${text(nodeIn(node, 'argument'))})`]];
    case 'Literal':
      return literal(node['value'], text(node)).map((code) => [node, code]);
    case 'TemplateLiteral':
      return [[node, "'?'"]];
    case 'ArrayExpression':
      return nodesIn(node, 'elements').map((part) => [node, without(node, part, text)]);
    case 'ObjectExpression':
      return nodesIn(node, 'properties')
        .filter((part) => part.type === 'SpreadElement')
        .map((part) => [node, without(node, part, text)]);
    case 'ExpressionStatement':
      return [[node, '']];
    default:
      return [];
  }
}

function literal(value: unknown, code: string): readonly string[] {
  if (typeof value === 'number') return [`(${code} + 1)`];
  if (typeof value === 'string') return [value === '' ? "'?'" : "''"];
  return typeof value === 'boolean' ? [String(!value)] : [];
}

/** Returns the code of a list or an object without one of its parts. */
function without(node: Node, part: Node, text: Text): string {
  const code = text(node);
  const after = code.slice(part.end - node.start).replace(/^\s*,/, '');
  return `(${code.slice(0, part.start - node.start)}${after})`;
}
