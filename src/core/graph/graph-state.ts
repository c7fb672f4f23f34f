import type { CallResult } from '../calls/call-result.js';
import type { JsonObject } from '../json.js';

/** A run's position in its graph. It is part of the run's state. */
export interface GraphState {
  /** The fields that have a value. */
  readonly values: JsonObject;
  /** The run's current node; null between turns. */
  readonly at: GraphPlace | null;
  /** The nodes that the run has visited, in the order of their first visits. */
  readonly visited: readonly NodeVisits[];
  /** The plan that a person has confirmed in this turn. Only a `confirm` node can write this. */
  readonly confirmed?: ConfirmedPlan;
  /** The results of a visit's calls at the time of its interruption. */
  readonly interrupted?: Interrupted;
  /** The newest run of each `agent` node that continues its conversation. */
  readonly conversations?: readonly Conversation[];
}

/** The plan that a person approved. */
export interface ConfirmedPlan {
  /** SHA-256 (hex) of the actions as canonical JSON. */
  readonly digest: string;
  /** The actions whose arguments were complete when they were shown. */
  readonly actions: readonly string[];
}

/** The results of an interrupted visit that may resume. */
export interface Interrupted {
  readonly node: string;
  readonly visit: number;
  readonly results: readonly CallResult[];
}

/** A conversation with a called agent, which the next visit of the node continues. */
export interface Conversation {
  readonly node: string;
  readonly agent: string;
  /** Workflow id of the agent's run. */
  readonly run: string;
}

/** A visit of a node. */
export interface GraphPlace {
  readonly node: string;
  /** Number of the visit among all visits of the node in the run, from 1. */
  readonly visit: number;
  /** When it began, Unix time in ms. */
  readonly since: number;
}

/** A run's visits of one node, in all its turns. */
export interface NodeVisits {
  readonly node: string;
  /** Number of visits in the current turn, or in the last one between turns. */
  readonly inTurn: number;
  readonly total: number;
  /** Total duration of all ended visits in ms. */
  readonly ms: number;
  /** How often each exit was taken. Exits that were never taken are absent. */
  readonly taken: readonly { readonly exit: string; readonly count: number }[];
}
