import type { AgentDefinition } from '../definition/definition.js';
import type { RunState } from '../state.js';
import { planSchema } from '../plan/plan-schema.js';
import type { GraphNode } from './definition.js';
import { currentNode, findNode } from './node-tool.js';

/** Whether a model call at this node differs from one by the graph's own definition. */
function hasOwnDefinition(node: GraphNode): boolean {
  return node.kind === 'plan' || node.kind === 'answer' || isTyped(node);
}

function isTyped(node: GraphNode): boolean {
  return node.kind === 'decide' && (node.output ?? node.toolChoice) !== undefined;
}

/** Returns the name of the current node if its model calls differ from the graph's definition. */
export function variantNode(state: RunState): string | undefined {
  const node = currentNode(state);
  return node && hasOwnDefinition(node) ? node.name : undefined;
}

/**
 * Returns the definition for model calls at a node. Instructions never differ, so prompt prefixes
 * stay stable.
 */
export function definitionAt(
  definition: AgentDefinition,
  name: string | undefined,
): AgentDefinition {
  const { graph } = definition;
  const node = name === undefined || graph === undefined ? undefined : findNode(graph, name);
  switch (node?.kind) {
    case 'decide': {
      if (node.output === undefined) {
        const { toolChoice = definition.toolChoice } = node;
        return { ...definition, toolChoice };
      }
      const { attempts, ...output } = node.output;
      return { ...definition, output: { type: 'json', ...output }, toolChoice: 'none', attempts };
    }
    case 'plan': {
      if (node.planning === 'catalog') return { ...definition, toolCalls: 'parallel' };
      const schema = planSchema(definition.tools.map((tool) => tool.name));
      const output = { type: 'json', name: 'plan', schema } as const;
      return { ...definition, output, toolChoice: 'none', attempts: node.attempts };
    }
    case 'answer':
      return { ...definition, toolChoice: 'none' };
    default:
      return definition;
  }
}
