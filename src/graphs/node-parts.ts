import { z } from 'zod';
import { InputError } from '../core/errors.js';
import type { Agent } from '../agents/agent.js';
import type { AnswerContract } from '../agents/agent-output.js';
import type { NodeFunction } from '../agents/graph-parts.js';
import type { NodeKind, WorkerNode } from '../core/graph/definition.js';
import type { Json } from '../core/json.js';
import type { Tool } from '../tools/tool.js';
import { checkPaths } from './check-paths.js';
import type { AuthorFunction } from './node-function.js';
import { pathTo, templateOf } from './path.js';
import { assertHolds, unknownField, type SavedResult, type StateFields } from './state-schema.js';
import { nearestFirst } from '../validation/nearest.js';

/** A node that is complete except for the targets of its exits. */
export interface BuiltNode {
  readonly kind: NodeKind;
  /**
   * The exits that must be wired; null for a `decide`, whose exits are named after the graph's
   * tools.
   */
  readonly exits: readonly string[] | null;
  /** The exits that may stay unwired. */
  readonly optional: readonly string[];
  readonly common: { readonly label?: string; readonly maxVisits?: number };
  readonly run?: NodeFunction;
  /** The contract for the replies of a `decide`. */
  readonly output?: AnswerContract;
  /** The tools that a `decide` lists; absent if it lists none. */
  readonly named?: readonly string[];
  readonly agents: readonly Agent[];
  readonly tools: readonly Tool[];
}

/** Where a node is built. */
export interface Site {
  /** The start of each error message: `graph "mail": node "ask"`. */
  readonly where: string;
  readonly fields: StateFields;
}

/** What the builder of a kind returns. */
export type Parts = Pick<BuiltNode, 'kind' | 'exits' | 'optional'> & Partial<BuiltNode>;

/**
 * Returns `save`. Throws an `InputError` if the state has no such field, or if the field cannot hold
 * the node's result, where that is known.
 */
export function saveField(
  site: Site,
  save: string | undefined,
  result?: SavedResult,
): { readonly save?: string } {
  return save === undefined ? {} : { save: fieldOf(site, 'save', save, result) };
}

/** Returns the type of what a node with this agent saves; undefined if it is not known. */
export function agentResult(
  agent: string | Agent,
  prompt: string | undefined,
): SavedResult | undefined {
  // An agent by name may be any, a graph's result is its state, and a prompt may have an output.
  if (typeof agent === 'string' || prompt !== undefined || agent.graph !== undefined)
    return undefined;
  const { answer, decide } = agent;
  if (answer === null) return typeof decide === 'function' ? undefined : 'a text';
  return answer.parser?.type === 'zod' ? answer.parser.schema : undefined;
}

/** Returns the type of what a node with this tool saves; undefined if it is not known. */
export function toolResult(tool: string | Tool): SavedResult | undefined {
  if (typeof tool === 'string' || tool.output === undefined) return undefined;
  // Instead of a value, a tool may return an artifact, and the node then saves the artifact's name.
  return z.union([tool.output, z.string()]);
}

/** The checked limits of a node; `timeout` is in ms. */
interface NodeLimits {
  readonly timeout?: number | undefined;
  readonly attempts?: number | undefined;
}

export function workerNode({ attempts = 3, timeout: timeoutMs = 120_000 }: NodeLimits): WorkerNode {
  return { timeoutMs, attempts };
}

/**
 * Calls the function of an option once, with places instead of values, and returns its result as
 * JSON.
 */
export function computed(
  { where, fields }: Site,
  option: string,
  compute: AuthorFunction | undefined,
  withItem = false,
): Json {
  if (compute === undefined)
    throw new InputError(`${where}: ${option}: expected a function, got none`);
  const given = withItem ? [pathTo('$path'), pathTo('$item')] : [pathTo('$path')];
  const value = templateOf(
    withOptionName(where, option, () => compute(...given)),
    `${where}: ${option}`,
  );
  checkPaths(`${where}: ${option}`, { fields, key: '$path' }, value);
  return value;
}

/** The input of an agent call: a message, or one of its prompts. */
interface CallInput {
  readonly agent: string | Agent;
  readonly message: AuthorFunction | undefined;
  readonly prompt: string | undefined;
  readonly args: AuthorFunction | undefined;
}

/**
 * Returns a node's message or prompt as data. Throws an `InputError` if both are given, or if the
 * agent lacks the prompt.
 */
export function messageParts(
  site: Site,
  { agent, message, prompt, args }: CallInput,
  withItem = false,
): { readonly message: Json; readonly prompt?: string; readonly args?: Json } {
  const { where } = site;
  if (prompt === undefined) {
    if (args !== undefined)
      throw new InputError(`${where}: args: expected a prompt; give \`prompt\` too`);
    return { message: computed(site, 'message', message, withItem) };
  }
  if (message !== undefined) {
    throw new InputError(`${where}: message: cannot be combined with \`prompt\`; remove one`);
  }
  const prompts = typeof agent === 'string' ? undefined : [...(agent.prompts?.keys() ?? [])];
  if (prompts !== undefined && !prompts.includes(prompt)) {
    const nearest = nearestFirst(prompt, prompts).slice(0, 3).join(', ') || 'none';
    throw new InputError(
      `${where}: prompt: expected a prompt of agent "${nameOf(agent)}", got "${prompt}" (nearest: ${nearest}); correct the name`,
    );
  }
  if (args === undefined) return { message: '', prompt };
  return { message: '', prompt, args: computed(site, 'args', args, withItem) };
}

/** Calls a function; an error that it throws is rethrown with the node and the option. */
export function withOptionName<Value>(where: string, option: string, call: () => Value): Value {
  try {
    return call();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new InputError(`${where}: ${option}: ${reason}`, { cause: error });
  }
}

export function nameOf(given: string | { readonly name: string }): string {
  return typeof given === 'string' ? given : given.name;
}

export function objectOf<Given extends object>(
  given: string | Given | undefined,
): readonly Given[] {
  return given === undefined || typeof given === 'string' ? [] : [given];
}

/**
 * Returns the name of a field. Throws an `InputError` if the state has no such field, or if it
 * cannot hold `result`.
 */
export function fieldOf(
  { where, fields }: Site,
  option: string,
  name: string,
  result?: SavedResult,
): string {
  if (!fields.has(name))
    throw new InputError(unknownField(`${where}: ${option} names`, fields, name));
  if (result !== undefined)
    assertHolds(`${where}: ${option}`, { field: name, type: fields.get(name) }, result);
  return name;
}

/** Returns the limits that the author has set for a node. */
export function limitsOf({ timeout, attempts }: NodeLimits): Partial<WorkerNode> {
  return {
    ...(timeout !== undefined && { timeoutMs: timeout }),
    ...(attempts !== undefined && { attempts }),
  };
}
