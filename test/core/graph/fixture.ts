import type { GraphDefinition } from '../../../src/core/definition/graph-definition.js';
import type { GraphNode } from '../../../src/core/definition/node-kinds.js';
import type { GraphState } from '../../../src/core/state/state.js';

/** A graph with these nodes, and nothing else that a drawing shows. */
export function graphOfNodes(start: string, nodes: readonly GraphNode[]): GraphDefinition {
  return { start, nodes, fields: [], initial: {}, perTurn: [] };
}

/** A node that runs a function and leads to `to`. */
export function runNode(name: string, to: string, label?: string): GraphNode {
  return {
    name,
    kind: 'run',
    timeoutMs: 1_000,
    attempts: 1,
    exits: [{ name: 'done', to }],
    ...(label !== undefined && { label }),
  };
}

const exits = (table: Readonly<Record<string, string>>): GraphNode['exits'] =>
  Object.entries(table).map(([name, to]) => ({ name, to }));

/** The graph of the design document: load, sort, ask, send, page. */
export const mail: GraphDefinition = graphOfNodes('load', [
  runNode('load', 'sort', 'load the mail'),
  { name: 'sort', kind: 'choose', cases: [], exits: exits({ urgent: 'page', else: 'ask' }) },
  {
    name: 'ask',
    kind: 'agent',
    agent: 'desk',
    message: 'x',
    exits: exits({ done: 'send', stopped: 'end', failed: 'end' }),
  },
  { name: 'send', kind: 'confirm', show: 'x', exits: exits({ yes: 'end', no: 'ask' }) },
  {
    name: 'page',
    kind: 'route',
    timeoutMs: 1_000,
    attempts: 1,
    exits: exits({ paged: 'ask', nobody: 'end' }),
  },
]);

/** A run of it that was sent back once, and waits for a person again. */
export const asking: GraphState = {
  values: {},
  at: { node: 'ask', visit: 2, since: 10_000 },
  visited: [
    { node: 'load', inTurn: 1, total: 3, ms: 1_200, taken: [{ exit: 'done', count: 3 }] },
    { node: 'sort', inTurn: 1, total: 3, ms: 0, taken: [{ exit: 'else', count: 3 }] },
    { node: 'ask', inTurn: 2, total: 2, ms: 4_000, taken: [{ exit: 'done', count: 1 }] },
    { node: 'send', inTurn: 1, total: 1, ms: 125_000, taken: [{ exit: 'no', count: 1 }] },
  ],
};
