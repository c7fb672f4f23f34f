import type { GraphNode } from './definition.js';

/** A graph as it is drawn: of a `defineGraph`, or the built-in loop of an agent. It is plain JSON. */
export interface Drawing {
  /** The start comes first. */
  readonly nodes: readonly DrawnNode[];
  readonly edges: readonly DrawnEdge[];
}

export interface DrawnNode {
  /** Unique in the drawing, and made by perdure: `start`, `finish`, `n0`, `n1`, … */
  readonly id: string;
  /** The name in the definition; that of the start and of the end is their kind. */
  readonly name: string;
  /** One line for people, from the author. It may have any characters. */
  readonly label: string;
  readonly kind: DrawnKind;
  /** What the node does, such as `agent desk`; may have any characters. Empty for start and end. */
  readonly about: string;
  /** What a run has done here; absent in a drawing without a run. */
  readonly mark?: 'visited' | 'here' | 'unvisited';
  /** Number of visits; only if there was one. */
  readonly visits?: number;
  /** Time of all visits that have ended, in ms; only if one has ended. */
  readonly ms?: number;
  /** What the caller says about the run's current node, such as `waits here`. */
  readonly note?: string;
}

/** The kinds of a graph, the two ends, and a target that the definition lacks. */
export type DrawnKind = GraphNode['kind'] | 'start' | 'end' | 'missing';

export interface DrawnEdge {
  /** Ids of nodes. */
  readonly from: string;
  readonly to: string;
  /** Null if the node has only this exit. */
  readonly exit: string | null;
  /** How often a run has taken this edge; absent in a drawing without a run. Of the start: 0 or 1. */
  readonly taken?: number;
}

/** The ids of the two ends. A drawing without an exit to `END` has no end. */
export const START_ID = 'start';
export const END_ID = 'finish';
