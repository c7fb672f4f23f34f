import type { RunState } from '../state.js';
import type { GraphNode } from './definition.js';
import { currentNode } from './node-tool.js';

type AgentNode = Extract<GraphNode, { kind: 'agent' }>;

/**
 * Returns the workflow id of the run whose conversation the node continues; undefined if there is
 * none.
 */
export function continuedRun({ graph }: RunState, { name, agent }: AgentNode): string | undefined {
  // After a refresh, the node may call another agent, which must not read the conversation.
  return graph?.conversations?.find((one) => one.node === name && one.agent === agent)?.run;
}

/** Records the run that the current node's next visit continues. */
export function withConversation(state: RunState, run: string): RunState {
  const { graph } = state;
  const node = currentNode(state);
  if (graph === undefined || node?.kind !== 'agent') return state;
  const { name, agent } = node;
  const conversations = [
    ...(graph.conversations ?? []).filter((one) => one.node !== name),
    { node: name, agent, run },
  ];
  return { ...state, graph: { ...graph, conversations } };
}
