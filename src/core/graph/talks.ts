import type { RunState } from '../state.js';

/** Returns the run that the node's last visit has left; undefined at its first visit. */
export function talkOf({ graph }: RunState, node: string): string | undefined {
  return graph?.talks?.find((talk) => talk.node === node)?.run;
}

/** Remembers the run with which the next visit of the current node goes on. */
export function withTalk(state: RunState, run: string): RunState {
  const { graph } = state;
  const node = graph?.at?.node;
  if (graph === undefined || node === undefined) return state;
  const talks = [...(graph.talks ?? []).filter((talk) => talk.node !== node), { node, run }];
  return { ...state, graph: { ...graph, talks } };
}
