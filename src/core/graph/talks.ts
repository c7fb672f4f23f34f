import type { RunState } from '../state.js';

/** Returns the workflow id of the run that the node's previous visit started; undefined at its first visit. */
export function talkOf({ graph }: RunState, node: string): string | undefined {
  return graph?.talks?.find((talk) => talk.node === node)?.run;
}

/** Remembers the run that the current node's next visit continues. */
export function withTalk(state: RunState, run: string): RunState {
  const { graph } = state;
  const node = graph?.at?.node;
  if (graph === undefined || node === undefined) return state;
  const talks = [...(graph.talks ?? []).filter((talk) => talk.node !== node), { node, run }];
  return { ...state, graph: { ...graph, talks } };
}
