import type { GraphNode } from './definition.js';

/**
 * A graph in drawable form: one from `defineGraph`, or an agent's built-in loop. It is plain JSON.
 */
export interface Drawing {
  /** The start comes first. */
  readonly nodes: readonly DrawnNode[];
  readonly edges: readonly DrawnEdge[];
}

export interface DrawnNode {
  /** Unique in the drawing, and assigned by perdure: `start`, `finish`, `n0`, `n1`, … */
  readonly id: string;
  /** The name in the definition; for the start and the end, their kind. */
  readonly name: string;
  /** One line for people, from the author. It may contain any characters. */
  readonly label: string;
  readonly kind: DrawnKind;
  /**
   * What the node does, such as `agent desk`. It may contain any characters and is empty for start
   * and end.
   */
  readonly about: string;
  /** Whether a run has visited the node or is at it; absent in a drawing without a run. */
  readonly mark?: 'visited' | 'here' | 'unvisited';
  /** Number of visits; absent if there were none. */
  readonly visits?: number;
  /** Total time of all ended visits in ms; absent if none has ended. */
  readonly ms?: number;
  /** The caller's note for the run's current node, such as `waits here`. */
  readonly note?: string;
}

/** The node kinds of a graph, the start, the end, and a target missing from the definition. */
export type DrawnKind = GraphNode['kind'] | 'start' | 'end' | 'missing';

export interface DrawnEdge {
  /** Ids of nodes. */
  readonly from: string;
  readonly to: string;
  /** Null if the node has only this exit. */
  readonly exit: string | null;
  /**
   * How often a run has taken this edge; absent in a drawing without a run. For the start: 0 or 1.
   */
  readonly taken?: number;
}

/** The ids of the two ends. A drawing without an exit to `END` has no end. */
export const START_ID = 'start';
export const END_ID = 'finish';
