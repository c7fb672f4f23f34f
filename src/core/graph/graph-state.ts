import type { CallResult } from '../calls/call-result.js';
import type { JsonObject } from '../json.js';

/** Where a run stands in its graph. A part of the run's state. */
export interface GraphState {
  /** The fields that have a value. */
  readonly values: JsonObject;
  /** The node that the run is at; null between turns. */
  readonly at: GraphPlace | null;
  /** The nodes that the run has visited, in the order of their first visits. */
  readonly visited: readonly NodeVisits[];
  /** The plan that a person has confirmed in this turn. Only a `confirm` node can write this. */
  readonly confirmed?: ConfirmedPlan;
  /** What the calls of a visit had brought when the visit was interrupted. */
  readonly interrupted?: Interrupted;
  /** The newest run of each `agent` node that continues its conversation. */
  readonly talks?: readonly Talk[];
}

/** What a person has said yes to. */
export interface ConfirmedPlan {
  /** SHA-256 (hex) of the actions as canonical JSON. */
  readonly digest: string;
  /** The actions whose arguments were complete when they were shown. */
  readonly actions: readonly string[];
}

/** The results of a visit that was interrupted, and that may go on. */
export interface Interrupted {
  readonly node: string;
  readonly visit: number;
  readonly results: readonly CallResult[];
}

/** The run of a called agent. */
export interface Talk {
  readonly node: string;
  readonly agent: string;
  /** Workflow id. */
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

/** What the run has done at one node, in all its turns. */
export interface NodeVisits {
  readonly node: string;
  /** Number of visits in the current turn, or in the last one between turns. */
  readonly inTurn: number;
  readonly total: number;
  /** Time between the beginnings and the ends of all visits that have ended, in ms. */
  readonly ms: number;
  /** How often each exit was taken. An exit that was never taken is missing. */
  readonly taken: readonly { readonly exit: string; readonly count: number }[];
}
