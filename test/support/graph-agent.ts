import { z } from 'zod';
import type { Agent, AgentOptions, NodeFunction } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { GraphDefinition } from '../../src/core/definition/graph-definition.js';
import type { GraphNode, NodeKind } from '../../src/core/definition/node-kinds.js';

/** Creates a node from its exits, a table from each exit's name to its target. */
export function node(
  name: string,
  kind: NodeKind & { readonly maxVisits?: number },
  exits: Readonly<Record<string, string>>,
): GraphNode {
  return { name, ...kind, exits: Object.entries(exits).map(([exit, to]) => ({ name: exit, to })) };
}

/** The execution options of the functions in these tests. */
export const RUN = { kind: 'run', timeoutMs: 10_000, attempts: 2 } as const;
export const ROUTE = { kind: 'route', timeoutMs: 10_000, attempts: 2 } as const;

/** The execution options of a plan in the field `plan`. */
export const EXECUTE = {
  kind: 'execute',
  plan: 'plan',
  save: 'results',
  atOnce: 5,
  timeoutMs: 1_000,
  onFailedDependency: 'skip',
} as const;

/**
 * Creates a graph from its data, without the checks of `defineGraph`: the engine has to tolerate
 * anything.
 */
export function graphAgent(
  definition: Partial<GraphDefinition> & Pick<GraphDefinition, 'start' | 'nodes'>,
  functions: Readonly<Record<string, NodeFunction>> = {},
  options: Partial<AgentOptions> = {},
): Agent {
  const fields = ['text', 'answer', 'list', 'results', 'n', 'error', 'history'];
  return {
    ...defineAgent({ name: 'mail', instructions: 'x', toolCalls: 'first', ...options }),
    graph: {
      definition: { fields, initial: {}, perTurn: [], ...definition },
      functions: new Map(Object.entries(functions)),
      outputs: new Map(),
      input: z.object({}),
    },
  };
}
