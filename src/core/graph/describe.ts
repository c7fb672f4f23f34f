import type { GraphDefinition } from '../definition/graph-definition.js';
import type { GraphPlace, GraphState, NodeVisits, RunState } from '../state/state.js';
import { visible } from '../state/summaries.js';
import { formatDuration } from '../text/text.js';

/** A run's pinned graph, and the run's position in it. */
export interface RunGraph {
  readonly definition: GraphDefinition;
  readonly state: GraphState;
}

/** Returns the graph of a run; null if its agent has none, or if no worker has loaded it yet. */
export function runGraph({ config, graph }: RunState): RunGraph | null {
  const { graph: definition } = config.definition;
  if (definition === undefined || graph === undefined) return null;
  return { definition, state: graph };
}

/** Maximum number of nodes in the line of visited nodes. */
const MAX_NODES = 8;

/**
 * Returns up to two lines for people about a run's position in its graph: the current node, and the
 * nodes visited in this turn (between turns: in the last one). `now`: Unix time in ms; null:
 * without times. For example: `node ask, visit 2, for 3.0 s` and `done: load, sort`.
 */
export function describeGraph(
  { definition, state }: RunGraph,
  now: number | null,
): readonly string[] {
  const labels = new Map(definition.nodes.map(({ name, label }) => [name, label]));
  const named = (name: string): string => {
    const label = labels.get(name);
    return visible(label === undefined ? name : `${name} (${label})`);
  };
  const done = state.visited.flatMap((visited) => {
    const times = timesLeft(visited, state.at);
    if (times === 0) return [];
    return [times === 1 ? visible(visited.node) : `${visible(visited.node)} ${times}×`];
  });
  const left = done.length - MAX_NODES;
  const shown = left > 0 ? [`${left} more`, ...done.slice(-MAX_NODES)] : done;
  return [
    ...(state.at === null ? [] : [placeText(state.at, named, now)]),
    ...(shown.length === 0 ? [] : [`done: ${shown.join(', ')}`]),
  ];
}

function placeText(
  { node, visit, since }: GraphPlace,
  named: (name: string) => string,
  now: number | null,
): string {
  const again = visit > 1 ? `, visit ${visit}` : '';
  const time = now === null ? '' : `, for ${formatDuration(now - since)}`;
  return `node ${named(node)}${again}${time}`;
}

/** Returns the number of a node's ended visits in the turn. */
function timesLeft({ node, inTurn }: NodeVisits, at: GraphPlace | null): number {
  return Math.max(0, at?.node === node ? inTurn - 1 : inTurn);
}
