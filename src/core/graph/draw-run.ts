import type { RunState } from '../state.js';
import type { GraphDefinition } from './definition.js';
import { drawGraph } from './draw.js';
import { drawLoop } from './draw-loop.js';
import type { Drawing } from './drawing.js';
import type { GraphState } from './graph-state.js';

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

/**
 * Returns the drawing of a run's graph, marked with the run's visits, or that of the agent's loop.
 * `here`: the note for the run's current node.
 */
export function drawRun(state: RunState, here: string): Drawing {
  const graph = runGraph(state);
  if (graph !== null) return drawGraph(graph.definition, { state: graph.state, here });
  const { definition } = state.config;
  // The run has not begun its first turn.
  if (definition.graph !== undefined) return drawGraph(definition.graph);
  return drawLoop(definition);
}
