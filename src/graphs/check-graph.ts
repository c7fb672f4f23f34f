import { InputError } from '../core/errors.js';
import { END, type GraphExit, type GraphNode } from '../core/graph/definition.js';

/** Throws an `InputError` for unreachable nodes, and for cycles that may never end. */
export function checkGraph(graph: string, start: string, nodes: readonly GraphNode[]): void {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const reached = reachable(byName, [start], () => true);
  const lost = nodes.find(({ name }) => !reached.has(name));
  if (lost !== undefined) {
    throw new InputError(
      `graph "${graph}": node "${lost.name}" is never reached from "${start}"; wire an exit to it or remove it`,
    );
  }
  checkCycles(graph, byName);
  for (const node of nodes) {
    if (node.kind === 'tool' && node.arguments === undefined) checkCall(graph, byName, node);
  }
}

/** Whether a turn can take an exit any number of times without reaching a limit or a person. */
function isUnbounded(node: GraphNode, exit: GraphExit): boolean {
  if (node.maxVisits !== undefined || node.kind === 'decide' || node.kind === 'plan') return false;
  return node.kind !== 'confirm' || exit.name === 'expired';
}

/**
 * Throws an `InputError` for a cycle that nothing bounds: no `maxVisits`, no step limit, and no
 * person.
 */
function checkCycles(graph: string, nodes: ReadonlyMap<string, GraphNode>): void {
  const done = new Set<string>();
  for (const start of nodes.keys()) {
    // Walks without recursion, because a graph may be deeper than the call stack.
    const walk = [{ name: start, next: unbounded(nodes.get(start)) }];
    while (walk.length > 0) {
      const here = walk.at(-1);
      if (here === undefined) break;
      const name = here.next.shift();
      if (name === undefined) {
        done.add(here.name);
        walk.pop();
        continue;
      }
      const at = walk.findIndex((step) => step.name === name);
      if (at !== -1)
        throw new InputError(endless(graph, [...walk.slice(at).map((step) => step.name), name]));
      if (!done.has(name)) walk.push({ name, next: unbounded(nodes.get(name)) });
    }
  }
}

function unbounded(node: GraphNode | undefined): string[] {
  if (node === undefined) return [];
  return node.exits
    .filter((exit) => exit.to !== END && isUnbounded(node, exit))
    .map(({ to }) => to);
}

function endless(graph: string, cycle: readonly string[]): string {
  return (
    `graph "${graph}": node "${cycle[0] ?? ''}": the cycle ${cycle.join(' → ')} may never end; ` +
    'give one of its nodes `maxVisits` and wire its exit "capped"'
  );
}

/** Throws an `InputError` if no `decide` asks for the call that a `tool` node executes. */
function checkCall(
  graph: string,
  nodes: ReadonlyMap<string, GraphNode>,
  node: GraphNode & { readonly kind: 'tool' },
): void {
  const targets = [...nodes.values()]
    .filter(({ kind }) => kind === 'decide')
    .flatMap(({ exits }) => exits.filter(({ name }) => name === node.tool).map(({ to }) => to));
  // A call passes through other nodes, such as a `confirm`, until the next decision.
  if (reachable(nodes, targets, ({ kind }) => kind !== 'decide').has(node.name)) return;
  throw new InputError(
    `graph "${graph}": node "${node.name}": no exit "${node.tool}" of a decide node leads here; ` +
      'give it `arguments`, or wire that exit to this node',
  );
}

function reachable(
  nodes: ReadonlyMap<string, GraphNode>,
  from: readonly string[],
  passes: (node: GraphNode) => boolean,
): ReadonlySet<string> {
  const found = new Set<string>();
  const open = [...from];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const node = nodes.get(name);
    if (node === undefined || found.has(name)) continue;
    found.add(name);
    if (passes(node)) open.push(...node.exits.map(({ to }) => to));
  }
  return found;
}
