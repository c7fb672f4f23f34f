import { parseSync } from 'oxc-parser';

/** A node of the syntax tree. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** Fields of a node that contain no executable code. */
const TYPES = ['typeAnnotation', 'returnType', 'typeParameters', 'typeArguments', 'key'];
const SKIPPED = ['ImportDeclaration', 'TSTypeAliasDeclaration', 'TSInterfaceDeclaration'];

export function parse(file: string, source: string): Node {
  const { program, errors } = parseSync(file, source);
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  return nodeIn({ program }, 'program');
}

function isNode(value: unknown): value is Node {
  return (
    typeof value === 'object' && value !== null && typeof Reflect.get(value, 'type') === 'string'
  );
}

/** Returns the node in a field. */
export function nodeIn(parent: object, field: string): Node {
  const value: unknown = Reflect.get(parent, field);
  if (!isNode(value)) throw new Error(`${field}: expected a node`);
  return value;
}

/** Returns the nodes in a field, without the gaps of a list. */
export function nodesIn(parent: object, field: string): readonly Node[] {
  const value: unknown = Reflect.get(parent, field);
  return (Array.isArray(value) ? value : [value]).filter(isNode);
}

/** Returns the executable parts of a node, in the order of the source. */
export function childrenOf(node: Node): readonly Node[] {
  if (SKIPPED.includes(node.type)) return [];
  return Object.keys(node)
    .filter((field) => !TYPES.includes(field))
    .filter((field) => !node.type.startsWith('TS') || field === 'expression')
    .flatMap((field) => nodesIn(node, field))
    .toSorted((one, other) => one.start - other.start);
}
