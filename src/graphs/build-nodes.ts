import { InputError } from '../core/errors.js';
import type { McpServer } from '../mcp/mcp-server.js';
import { isObject } from '../core/json.js';
import { show } from '../core/text/format-value.js';
import type { Tool } from '../tools/tool.js';
import { buildNode } from './build-node.js';
import type { BuiltNode } from './node-parts.js';
import type { GraphOptions } from './graph-options.js';
import { specOf } from './kinds.js';
import type { StateFields } from './state-schema.js';
import { callsModel } from '../core/graph/node-tool.js';
import { checkName } from './wire-nodes.js';

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
    const { kind, options } = specOf(where, spec);
    const node = buildNode(kind, options, { where, fields });
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
  const missing = names.find((name) => !named.includes(name));
  if (missing !== undefined) {
    throw new InputError(`${where}: tools: the graph also has the tool "${missing}"; add it`);
  }
  const stray = named.find((name) => !names.includes(name));
  if (stray !== undefined && mcp.length === 0)
    throw new InputError(unknownTool(where, stray, names));
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
  return `${where}: the graph has no tool ${show(name)}; ${list}`;
}
