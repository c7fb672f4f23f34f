import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseSync } from 'oxc-parser';

/** A declaration of a type or a value: the file that holds it, and its name there. */
interface Declared {
  readonly file: string;
  readonly name: string;
}

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** What one `.d.ts` file declares, imports, and exports, by local name. */
interface Module {
  readonly declared: ReadonlyMap<string, readonly Node[]>;
  readonly imported: ReadonlyMap<string, Declared>;
  readonly exported: ReadonlyMap<string, Declared>;
}

/**
 * Returns the types that exported signatures mention and that no entry point exports, each with the
 * export that mentions it, such as `PerdureClient mentions RunRow (client/run-row.d.ts)`. A type that
 * its file does not export either is a part of the declarations that use it.
 */
export function unexportedTypes(entries: readonly string[]): readonly string[] {
  const { load, origin } = createReader();
  const isPublic = new Set<string>();
  const queue: Declared[] = [];
  for (const entry of entries) {
    for (const declared of load(entry).exported.values()) {
      const found = origin(declared);
      if (!isPublic.has(keyOf(found))) queue.push(found);
      isPublic.add(keyOf(found));
    }
  }
  const root = dirname(entries[0] ?? '');
  const missing = new Set<string>();
  for (const { file, name } of queue) {
    const module = load(file);
    const mentioned = (module.declared.get(name) ?? []).flatMap((node) => [...mentions(node)]);
    for (const other of new Set(mentioned)) {
      const imported = module.imported.get(other);
      const target = imported === undefined ? { file, name: other } : origin(imported);
      const isOurs = imported !== undefined || module.declared.has(other);
      if (!isOurs || isPublic.has(keyOf(target))) continue;
      if (!load(target.file).exported.has(target.name)) {
        // A helper that its file does not export: what it mentions is mentioned through it.
        isPublic.add(keyOf(target));
        queue.push(target);
        continue;
      }
      const place = target.file.slice(root.length + 1);
      missing.add(`${name} mentions ${target.name} (${place})`);
    }
  }
  return [...missing].toSorted();
}

/** A function or a value with the doc comment of its declaration. */
export interface Documented {
  readonly name: string;
  /** Empty if there is none. */
  readonly comment: string;
}

/** Returns the functions and constants that an entry point exports. Classes and types are left out. */
export function exportedValues(entry: string): readonly Documented[] {
  const { load, origin } = createReader();
  return [...load(entry).exported].flatMap(([name, declared]) => {
    const { file, name: local } = origin(declared);
    const [node] = load(file).declared.get(local) ?? [];
    if (node === undefined || !VALUES.has(node.type)) return [];
    return [{ name, comment: commentBefore(file, node) }];
  });
}

/** Returns everything that an entry point exports: types, classes, functions, and constants. */
export function exportedDeclarations(entry: string): readonly Documented[] {
  const { load, origin } = createReader();
  return [...load(entry).exported].map(([name, declared]) => {
    const { file, name: local } = origin(declared);
    const comments = (load(file).declared.get(local) ?? []).map((node) =>
      commentBefore(file, node),
    );
    return { name, comment: comments.find((comment) => comment !== '') ?? '' };
  });
}

/** An export as its declaration file has it. */
export interface Declaration {
  readonly name: string;
  readonly kind: 'function' | 'constant' | 'class' | 'type';
  /** The doc comment, with its stars; empty if there is none. */
  readonly comment: string;
  /** The declaration without its members: each overload of a function, the head of an interface. */
  readonly heads: readonly string[];
  /** The public members of an interface or a class, each with its declaration as `name`. */
  readonly members: readonly Documented[];
}

/** Returns everything that an entry point exports, in its order. */
export function declarationsOf(entry: string): readonly Declaration[] {
  const { load, origin } = createReader();
  return [...load(entry).exported].flatMap(([name, declared]) => {
    const { file, name: local } = origin(declared);
    const found = load(file).declared.get(local) ?? [];
    const [first] = found;
    if (first === undefined) return [];
    const comments = found.map((node) => commentBefore(file, node));
    return [
      {
        name,
        kind: KINDS[first.type] ?? 'type',
        comment: comments.find((comment) => comment !== '') ?? '',
        heads: found.map((node) => headOf(file, node)),
        members: found.flatMap((node) => publicMembers(file, node)),
      },
    ];
  });
}

const KINDS: Readonly<Record<string, Declaration['kind']>> = {
  FunctionDeclaration: 'function',
  TSDeclareFunction: 'function',
  VariableDeclaration: 'constant',
  ClassDeclaration: 'class',
};

/** Returns a declaration on one line, without the members of an interface or a class. */
function headOf(file: string, node: Node): string {
  const body = isNode(node['body']) ? node['body'] : null;
  return sourceOf(file, { start: node['start'], end: body?.['start'] ?? node['end'] });
}

function publicMembers(file: string, node: Node): readonly Documented[] {
  const body = isNode(node['body']) ? node['body']['body'] : [];
  return nodes(body)
    .filter((member) => member['accessibility'] !== 'private' && !isHidden(member['key']))
    .map((member) => ({
      name: sourceOf(file, { start: member['start'], end: member['end'] }),
      comment: commentBefore(file, member),
    }));
}

function isHidden(key: unknown): boolean {
  return isNode(key) && key.type === 'PrivateIdentifier';
}

function sourceOf(file: string, range: Readonly<Record<'start' | 'end', unknown>>): string {
  const text = readFileSync(file, 'utf8').slice(Number(range.start), Number(range.end));
  return text
    .replaceAll(/\/\*(?:(?!\*\/)[\s\S])*\*\//g, ' ')
    .replaceAll(/\s+/g, ' ')
    .replace(/^(?:export )?(?:declare )?/, '')
    .replace(/;?\s*$/, '');
}

const VALUES: ReadonlySet<string> = new Set([
  'FunctionDeclaration',
  'TSDeclareFunction',
  'VariableDeclaration',
]);

/** Returns the members of an interface that have a name. */
export function membersOf(file: string, name: string): readonly Documented[] {
  const [node] = moduleOf(file).declared.get(name) ?? [];
  const body = isNode(node?.['body']) ? node['body']['body'] : [];
  return nodes(body).flatMap((member) => {
    const key = textOf(member['key'], 'name');
    return key === null ? [] : [{ name: key, comment: commentBefore(file, member) }];
  });
}

/** The doc comment right before a declaration; empty if there is none. */
function commentBefore(file: string, { start }: Node): string {
  const before = readFileSync(file, 'utf8').slice(0, Number(start));
  return /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*(?:export )?(?:declare )?$/.exec(before)?.[0] ?? '';
}

interface Reader {
  readonly load: (file: string) => Module;
  /** Follows re-exports to the file that declares a name. */
  readonly origin: (declared: Declared) => Declared;
}

function createReader(): Reader {
  const modules = new Map<string, Module>();
  const load = (file: string): Module => {
    const known = modules.get(file);
    if (known !== undefined) return known;
    const made = moduleOf(file);
    modules.set(file, made);
    return made;
  };
  const origin = ({ file, name }: Declared): Declared => {
    const module = load(file);
    const next = module.exported.get(name);
    if (next === undefined || (next.file === file && module.declared.has(next.name))) {
      return next ?? { file, name };
    }
    return origin(next);
  };
  return { load, origin };
}

function keyOf({ file, name }: Declared): string {
  return `${file}#${name}`;
}

function moduleOf(file: string): Module {
  const { program } = parseSync(file, readFileSync(file, 'utf8'));
  const declared = new Map<string, Node[]>();
  const imported = new Map<string, Declared>();
  const exported = new Map<string, Declared>();
  const declare = (node: Node): readonly string[] => {
    const names = namesOf(node);
    for (const name of names) declared.set(name, [...(declared.get(name) ?? []), node]);
    return names;
  };
  for (const node of nodes(program.body)) {
    const source = textOf(node['source'], 'value');
    const target = source === null ? null : fileOf(file, source);
    if (node.type === 'ImportDeclaration' && target !== null) {
      for (const each of nodes(node['specifiers'])) {
        const name = textOf(each['imported'], 'name') ?? 'default';
        imported.set(textOf(each['local'], 'name') ?? name, { file: target, name });
      }
    } else if (node.type === 'ExportNamedDeclaration') {
      const [inner] = nodes([node['declaration']]);
      if (inner !== undefined) {
        for (const name of declare(inner)) exported.set(name, { file, name });
      }
      for (const each of nodes(node['specifiers'])) {
        const local = textOf(each['local'], 'name') ?? '';
        const name = textOf(each['exported'], 'name') ?? local;
        if (source === null) exported.set(name, imported.get(local) ?? { file, name: local });
        else if (target !== null) exported.set(name, { file: target, name: local });
      }
    } else if (node.type === 'ExportAllDeclaration' && target !== null) {
      const all = moduleOf(target);
      for (const name of all.exported.keys()) {
        const isValue = all.declared.get(name)?.some(({ type }) => VALUES.has(type));
        if (node['exportKind'] === 'type' && isValue) continue;
        exported.set(name, { file: target, name });
      }
    } else {
      declare(node);
    }
  }
  return { declared, imported, exported };
}

/** Null for a package. */
function fileOf(from: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null;
  return resolve(dirname(from), specifier.replace(/\.js$/, '.d.ts'));
}

function namesOf(node: Node): readonly string[] {
  if (node.type === 'VariableDeclaration') {
    return nodes(node['declarations']).flatMap((each) => textOf(each['id'], 'name') ?? []);
  }
  const name = textOf(node['id'], 'name');
  return name === null ? [] : [name];
}

/** The names of all types that a declaration refers to. */
function* mentions(node: unknown): Generator<string> {
  if (Array.isArray(node)) {
    for (const each of node) yield* mentions(each);
    return;
  }
  if (!isNode(node)) return;
  const name = leftmost(node);
  if (name !== null) yield name;
  for (const value of Object.values(node)) yield* mentions(value);
}

/** The type that a reference, an `extends`, or an `implements` names. */
function leftmost(node: Node): string | null {
  const by: Readonly<Record<string, string>> = {
    TSTypeReference: 'typeName',
    TSInterfaceHeritage: 'expression',
    TSClassImplements: 'expression',
    ClassDeclaration: 'superClass',
  };
  const field = by[node.type];
  if (field === undefined) return null;
  let reference: unknown = node[field];
  while (isNode(reference) && reference.type === 'TSQualifiedName') reference = reference['left'];
  return textOf(reference, 'name');
}

function nodes(value: unknown): readonly Node[] {
  return Array.isArray(value) ? value.filter((each) => isNode(each)) : [];
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value;
}

function textOf(node: unknown, field: string): string | null {
  if (typeof node !== 'object' || node === null) return null;
  const value = Object.entries(node).find(([key]) => key === field)?.[1];
  return typeof value === 'string' ? value : null;
}
