import { END, type GraphExit } from '../core/definition/node-data.js';
import { type GraphNode, callsModel } from '../core/definition/node-kinds.js';
import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { McpServer } from '../mcp/mcp-server.js';
import type { Tool } from '../tools/tool.js';
import { likelyMeant } from '../validation/near-names.js';
import type { GraphOptions } from './graph-options.js';
import { NODE_KINDS } from './node-kinds.js';
import { type BuiltNode, type Site, builderOf } from './node-options.js';
import type { StateFields } from './state-schema.js';

/** Returns how a node is built. Throws an `InputError` if no kind made the value. */
function builderAt(where: string, spec: unknown): (site: Site) => BuiltNode {
  const build = isObject(spec) ? builderOf(spec) : undefined;
  if (!isObject(spec) || build === undefined) {
    const kinds = Object.keys(NODE_KINDS).join(', ');
    throw new InputError(`${where}: expected a node made by one of ${kinds}, got ${show(spec)}`);
  }
  const { kind, options } = spec;
  if (isObject(options)) return build;
  throw new InputError(
    `${where}: expected ${String(kind)}({…}), got ${String(kind)}(${show(options)})`,
  );
}

const NAME = /^[a-zA-Z][\w-]{0,39}$/;

/** Throws an `InputError` unless a string can name a node or an exit. */
function checkName(where: string, name: string): void {
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

interface GivenNode {
  readonly name: string;
  readonly node: BuiltNode;
  readonly given: unknown;
}

function exitsOf(table: Table, { name, node, given }: GivenNode): readonly GraphExit[] {
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
  if (given.includes('expired') && node.kind.kind === 'confirm' && !known.includes('expired')) {
    throw new InputError(
      `${where}: exit "expired" is never taken; give the node \`expires\`, such as "2 days", or remove the exit`,
    );
  }
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
  throw new InputError(`${where}: ${unknownNode(to, table, [END])}`);
}

/** Returns the error text for a node that does not exist. `ends`: what may stand in its place. */
export function unknownNode(
  name: unknown,
  { names }: Pick<Table, 'names'>,
  ends: readonly string[] = [],
): string {
  const all = [...names, ...ends];
  return `unknown node ${show(name)}${hint(name, all)}; expected one of ${all.join(', ')}`;
}

function hint(name: unknown, known: readonly string[]): string {
  const meant = typeof name === 'string' ? likelyMeant(name, known) : undefined;
  return meant === undefined ? '' : `, did you mean "${meant}"?`;
}

const MAX_NODES = 200;

interface Given extends Pick<GraphOptions, 'name' | 'decide' | 'instructions'> {
  readonly tools?: readonly Tool[];
  readonly mcp?: readonly McpServer[];
  readonly fields: StateFields;
  /** What the author's `nodes` returned. */
  readonly specs: unknown;
}

/** Returns the nodes by name. Throws an `InputError` for the first invalid node. */
export function buildNodes(given: Given): ReadonlyMap<string, BuiltNode> {
  const { name: graph, specs, fields } = given;
  if (!isObject(specs)) {
    throw new InputError(`graph "${graph}": nodes: expected { name: node }, got ${show(specs)}`);
  }
  const entries = Object.entries(specs);
  if (entries.length === 0 || entries.length > MAX_NODES) {
    throw new InputError(
      `graph "${graph}": nodes: expected 1 to ${MAX_NODES} nodes, got ${entries.length}; ` +
        'move some of them to a graph of their own',
    );
  }
  const nodes = entries.map(([name, spec]): [string, BuiltNode] => {
    checkName(`graph "${graph}": nodes`, name);
    const where = `graph "${graph}": node "${name}"`;
    const node = builderAt(where, spec)({ where, fields });
    const { kind } = node.kind;
    if (kind === 'route' || kind === 'choose') checkExitNames(where, node);
    return [name, withModel(where, given, node)];
  });
  checkTools(graph, given, new Map(nodes));
  checkPlans(graph, new Map(nodes));
  return new Map(nodes);
}

/**
 * Throws an `InputError` if two exits share a name, or if one has the name of an exit that every
 * such node has.
 */
function checkExitNames(where: string, { exits, optional }: BuiltNode): void {
  const names = exits ?? [];
  for (const [index, exit] of names.entries()) {
    checkName(`${where}: exits`, exit);
    if (names.indexOf(exit) !== index) {
      throw new InputError(
        `${where}: expected different exits, got ${show(exit)} twice; rename one`,
      );
    }
    if (optional.includes(exit)) {
      throw new InputError(
        `${where}: exit ${show(exit)} is one that every such node has; rename it`,
      );
    }
  }
}

/** Checks a node that calls the model, and adds the exits named after the graph's tools. */
function withModel(where: string, given: Given, node: BuiltNode): BuiltNode {
  const { kind } = node;
  if (!callsModel(kind)) return node;
  const choosesTools = node.exits === null;
  if (choosesTools || kind.kind === 'plan') checkHasTools(where, given);
  checkInstructions(where, given);
  return choosesTools ? withTools(where, given, node) : node;
}

function checkHasTools(where: string, { tools = [], mcp = [] }: Given): void {
  if (tools.length > 0 || mcp.length > 0) return;
  throw new InputError(
    `${where}: expected \`tools\` of the graph, got none; add the tools to choose from`,
  );
}

function checkInstructions(where: string, { instructions, decide }: Given): void {
  const isOwn = typeof decide === 'function';
  if (!isOwn && (instructions === undefined || instructions === '')) {
    throw new InputError(
      `${where}: expected \`instructions\` of the graph, got none; specify what to decide`,
    );
  }
}

/** Returns a `decide` node with its exits: one for each of the graph's tools, and `text`. */
function withTools(where: string, { tools = [], mcp = [] }: Given, node: BuiltNode): BuiltNode {
  const names = tools.map((tool) => tool.name);
  const { named = names } = node;
  const unnamed = names.filter((name) => !named.includes(name));
  // A tool of an MCP server is not known here, but one that is nearly a tool of the graph is a mistake.
  const stray = named.find(
    (name) => !names.includes(name) && (mcp.length === 0 || hint(name, unnamed) !== ''),
  );
  if (stray !== undefined) throw new InputError(unknownTool(where, stray, names));
  const [missing] = unnamed;
  if (missing !== undefined) {
    throw new InputError(`${where}: tools: the graph also has the tool "${missing}"; add it`);
  }
  const reserved = named.find((name) => name === 'text' || name === 'capped');
  if (reserved !== undefined) {
    throw new InputError(
      `${where}: exit "${reserved}" is one that every decide node has; rename the tool`,
    );
  }
  return { ...node, exits: [...new Set(named), 'text'] };
}

/** Throws an `InputError` for a node that calls a tool that the graph lacks. */
function checkTools(
  graph: string,
  { tools = [], mcp = [] }: Given,
  nodes: ReadonlyMap<string, BuiltNode>,
): void {
  if (mcp.length > 0) return;
  const own = [...nodes.values()].flatMap((node) => node.tools);
  const names = [...new Set([...tools, ...own].map((tool) => tool.name))];
  for (const [name, { kind }] of nodes) {
    const called = kind.kind === 'each' ? kind.body : kind;
    if (called.kind !== 'tool' || names.includes(called.tool)) continue;
    throw new InputError(unknownTool(`graph "${graph}": node "${name}"`, called.tool, names));
  }
}

/**
 * Throws an `InputError` for plans that no node creates, and for nodes that would overwrite one.
 */
function checkPlans(graph: string, nodes: ReadonlyMap<string, BuiltNode>): void {
  const planned = [...nodes.values()].flatMap(({ kind }) =>
    kind.kind === 'plan' ? [kind.save] : [],
  );
  for (const [name, { kind }] of nodes) {
    const where = `graph "${graph}": node "${name}"`;
    const reads = 'plan' in kind ? kind.plan : undefined;
    if (reads !== undefined && !planned.includes(reads)) {
      const known =
        planned.length === 0 ? 'the graph has none' : `available: ${planned.join(', ')}`;
      throw new InputError(
        `${where}: plan: expected a field that a plan node saves, got ${show(reads)}; ${known}`,
      );
    }
    const saves = 'save' in kind ? kind.save : undefined;
    if (saves === undefined || kind.kind === 'plan' || !planned.includes(saves)) continue;
    throw new InputError(
      `${where}: save: only a plan node may fill ${show(saves)}; use another field`,
    );
  }
}

function unknownTool(where: string, name: string, known: readonly string[]): string {
  const list = known.length === 0 ? 'it has none' : `its tools are ${known.join(', ')}`;
  return `${where}: the graph has no tool ${show(name)}${hint(name, known)}; ${list}`;
}
