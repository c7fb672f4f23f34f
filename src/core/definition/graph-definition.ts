import { type JsonObject, isObject } from '../text/json.js';
import { show } from '../text/text.js';
import type { GraphNode } from './node-kinds.js';

/**
 * A graph as data. A run pins it as part of the agent definition. Nodes and exits are lists, so no
 * name has a special meaning.
 */
export interface GraphDefinition {
  /** Name of the first node of each turn. */
  readonly start: string;
  readonly nodes: readonly GraphNode[];
  /** Names of the state's fields. A patch that names another field is refused. */
  readonly fields: readonly string[];
  /** The fields with initial values, and those values. */
  readonly initial: JsonObject;
  /** Fields that are reset to their initial values when a turn begins; the others keep theirs. */
  readonly perTurn: readonly string[];
  /** The field that receives the text of the turn's messages. Default: none. */
  readonly messageTo?: string;
  /**
   * The field that receives the last messages before the turn, as `{ role, text }`, oldest first.
   * Default: none.
   */
  readonly historyTo?: { readonly field: string; readonly last: number };
  /** The field that holds the outcome's `answer`; absent: the outcome has the state as JSON. */
  readonly answerFrom?: string;
  /**
   * The answer of a turn becomes a message of the conversation. Absent without `answerFrom`, and in
   * graphs of versions that did not do that.
   */
  readonly answerJoins?: true;
  /**
   * The answers of agents and graphs that nodes call become messages of the conversation, so that the
   * graph's model sees them. Absent where no model reads them, and in graphs of versions that did not
   * do that.
   */
  readonly nodesJoin?: true;
  /**
   * The field that is true if the graph has refused the turn's messages: they and the answer then
   * stay out of later prompts.
   */
  readonly refusedFrom?: string;
  /** The field that receives `{ node, type, message }` when a node leaves by `failed`. */
  readonly errorTo?: string;
}

/** Whether a run of this agent may take messages of an ended turn out of the prompt. */
export function mayRefuse({ graph }: { readonly graph?: GraphDefinition | undefined }): boolean {
  return graph?.refusedFrom !== undefined;
}

/** A visit of a node in the graph of a run. */
export interface NodeVisit {
  readonly node: string;
  /** From 1, counted over the whole run; default: the newest visit. */
  readonly visit?: number;
}

/** Returns what is wrong with the place of a visit, or null. `field`: its name in the message. */
export function nodeVisitProblem(value: unknown, field: string): string | null {
  const isPlace = isObject(value) && typeof value['node'] === 'string' && value['node'] !== '';
  if (!isPlace)
    return `${field}: expected the name of a node, got ${show(value)}; give for example {"node": "judge"}`;
  const { visit, node: _, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    return `${field}.${unknown}: expected one of node, visit; correct its name, or remove it`;
  if (visit === undefined || (Number.isInteger(visit) && Number(visit) >= 1)) return null;
  return `${field}.visit: expected the number of a visit, from 1, got ${show(visit)}; omit it for the newest visit`;
}
