import type { RunState } from '../state.js';
import type { GraphDefinition } from './definition.js';
import { drawGraph } from './draw.js';
import { drawLoop } from './draw-loop.js';
import type { Drawing } from './drawing.js';
import type { GraphState } from './graph-state.js';

/** The graph that a run has pinned, and where the run stands in it. */
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
 * Returns the drawing of a run's graph with what the run has done in it, or that of the agent's loop.
 * `here`: what to write at the node that the run is at.
 */
export function drawRun(state: RunState, here: string): Drawing {
  const graph = runGraph(state);
  if (graph !== null) return drawGraph(graph.definition, { state: graph.state, here });
  const { definition } = state.config;
  // The run has not begun its first turn.
  if (definition.graph !== undefined) return drawGraph(definition.graph);
  return drawLoop(definition);
}
