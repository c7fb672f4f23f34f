import { InputError } from '../core/errors.js';
import { END, type GraphExit, type GraphNode } from '../core/graph/definition.js';
import { isObject } from '../core/json.js';
import { show } from '../core/text/format-value.js';
import { likelyMeant } from '../validation/nearest.js';
import type { BuiltNode } from './node-parts.js';

const NAME = /^[a-zA-Z][\w-]{0,39}$/;

/** Throws an `InputError` unless a string can name a node or an exit. */
export function checkName(where: string, name: string): void {
  if (NAME.test(name) && name !== END) return;
  throw new InputError(
    `${where}: expected a name of letters, digits, "_", and "-" that begins with a letter, has at most ` +
      `40 characters, and is not "${END}", got ${show(name)}`,
  );
}

/** The names that edges may connect. */
interface Table {
  readonly graph: string;
  readonly names: readonly string[];
}

/**
 * Returns the nodes with their targets. Throws an `InputError` for each exit that is missing or
 * unknown.
 */
export function wireNodes(
  graph: string,
  nodes: ReadonlyMap<string, BuiltNode>,
  edges: unknown,
): readonly GraphNode[] {
  const table = { graph, names: [...nodes.keys()] };
  if (!isObject(edges)) {
    throw new InputError(`graph "${graph}": edges: expected { node: target }, got ${show(edges)}`);
  }
  const stray = Object.keys(edges).find((name) => !nodes.has(name));
  if (stray !== undefined) {
    throw new InputError(`graph "${graph}": edges: ${unknownNode(stray, table)}`);
  }
  return [...nodes].map(([name, node]): GraphNode => {
    const given = Object.hasOwn(edges, name) ? edges[name] : undefined;
    const exits = exitsOf(table, { name, node, given });
    return { name, exits, ...node.common, ...node.kind };
  });
}

interface Given {
  readonly name: string;
  readonly node: BuiltNode;
  readonly given: unknown;
}

function exitsOf(table: Table, { name, node, given }: Given): readonly GraphExit[] {
  const where = `graph "${table.graph}": node "${name}"`;
  const required = node.exits ?? [];
  const targets = targetsOf(where, required, given);
  checkExits(where, [...targets.keys()], node);
  return [...required, ...node.optional].flatMap((exit): GraphExit[] => {
    const to = targets.get(exit);
    if (to !== undefined)
      return [{ name: exit, to: target(table, `${where}: exit "${exit}"`, to) }];
    if (!required.includes(exit)) return [];
    throw new InputError(
      `${where}: exit "${exit}" leads nowhere; wire it to a node or to "${END}"`,
    );
  });
}

/** Returns the targets by exit. A node with one exit may specify its target directly. */
function targetsOf(
  where: string,
  required: readonly string[],
  given: unknown,
): ReadonlyMap<string, unknown> {
  const [only = '', ...others] = required;
  if (given === undefined) return new Map();
  if (typeof given === 'string') {
    if (others.length === 0) return new Map([[only, given]]);
    throw new InputError(
      `${where}: expected a target for each of the exits ${required.join(', ')}, got ${show(given)}; ` +
        `write { ${only}: ${show(given)}, … }`,
    );
  }
  if (!isObject(given)) {
    throw new InputError(
      `${where}: edges: expected a target or { exit: target }, got ${show(given)}`,
    );
  }
  return new Map(Object.entries(given).filter(([, to]) => to !== undefined));
}

function checkExits(where: string, given: readonly string[], node: BuiltNode): void {
  const known = [...(node.exits ?? []), ...node.optional];
  const stray = given.find((exit) => !known.includes(exit));
  if (stray !== undefined) {
    throw new InputError(
      `${where}: unknown exit ${show(stray)}${hint(stray, known)}; expected one of ${known.join(', ')}`,
    );
  }
  const { maxVisits } = node.common;
  if (given.includes('capped') && maxVisits === undefined) {
    throw new InputError(
      `${where}: exit "capped" is never taken; give the node \`maxVisits\` or remove it`,
    );
  }
  if (!given.includes('capped') && maxVisits !== undefined) {
    throw new InputError(
      `${where}: maxVisits is ${maxVisits}, but exit "capped" leads nowhere; wire it to a node or to "${END}"`,
    );
  }
}

function target(table: Table, where: string, to: unknown): string {
  if (typeof to !== 'string') {
    throw new InputError(`${where}: expected the name of a node or "${END}", got ${show(to)}`);
  }
  if (to === END || table.names.includes(to)) return to;
  throw new InputError(`${where}: ${unknownNode(to, table)}`);
}

/** Returns the error text for a node that does not exist. */
export function unknownNode(name: unknown, { names }: Pick<Table, 'names'>): string {
  return `unknown node ${show(name)}${hint(name, names)}; expected one of ${names.join(', ')}`;
}

function hint(name: unknown, known: readonly string[]): string {
  const meant = typeof name === 'string' ? likelyMeant(name, known) : undefined;
  return meant === undefined ? '' : `, did you mean "${meant}"?`;
}
