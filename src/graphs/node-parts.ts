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
import { unknownField, type Fields } from './state-schema.js';
import { nearestFirst } from '../validation/nearest.js';

/** A node of which only the targets of its exits are missing. */
export interface BuiltNode {
  readonly kind: NodeKind;
  /** The exits that have to lead somewhere; null: those of a `decide`, which the graph's tools name. */
  readonly exits: readonly string[] | null;
  /** The exits that may be missing. */
  readonly optional: readonly string[];
  readonly common: { readonly label?: string; readonly maxVisits?: number };
  readonly run?: NodeFunction;
  /** What the replies of a `decide` have to be. */
  readonly output?: AnswerContract;
  /** The tools that a `decide` names, if it names them. */
  readonly named?: readonly string[];
  readonly agents: readonly Agent[];
  readonly tools: readonly Tool[];
}

/** Where a node is built. */
export interface Site {
  /** Begins each message: `graph "mail": node "ask"`. */
  readonly where: string;
  readonly fields: Fields;
}

/** What the builder of a kind returns. */
export type Parts = Pick<BuiltNode, 'kind' | 'exits' | 'optional'> & Partial<BuiltNode>;

/** Returns `save`. Throws an `InputError` if the state has no such field. */
export function saved(
  { where, fields }: Site,
  save: string | undefined,
): { readonly save?: string } {
  if (save === undefined) return {};
  if (!fields.has(save)) throw new InputError(unknownField(`${where}: save names`, fields, save));
  return { save };
}

export function workerNode({
  attempts = 3,
  timeoutMs = 120_000,
}: {
  readonly attempts?: number | undefined;
  readonly timeoutMs?: number | undefined;
}): WorkerNode {
  return { timeoutMs, attempts };
}

/** Returns what an option computes, as JSON: it is called once, with places in place of values. */
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
    inOwnWords(where, option, () => compute(...given)),
    `${where}: ${option}`,
  );
  checkPaths(`${where}: ${option}`, { fields, key: '$path' }, value);
  return value;
}

/** What an agent is called with: a message, or one of its prompts. */
interface Said {
  readonly agent: string | Agent;
  readonly message: AuthorFunction | undefined;
  readonly prompt: string | undefined;
  readonly args: AuthorFunction | undefined;
}

/**
 * Returns a node's message or prompt as data. Throws an `InputError` for both, and for a prompt that the
 * agent lacks.
 */
export function messageParts(
  site: Site,
  { agent, message, prompt, args }: Said,
  withItem = false,
): { readonly message: Json; readonly prompt?: string; readonly args?: Json } {
  const { where } = site;
  if (prompt === undefined) {
    if (args !== undefined)
      throw new InputError(`${where}: args: expected a prompt; give \`prompt\` too`);
    return { message: computed(site, 'message', message, withItem) };
  }
  if (message !== undefined) {
    throw new InputError(`${where}: message: expected none beside \`prompt\`, which has the text`);
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

/** Calls a function; what it throws names the node and the option. */
export function inOwnWords<Value>(where: string, option: string, call: () => Value): Value {
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

/** Returns the name of a field. Throws an `InputError` if the state has no such field. */
export function fieldOf({ where, fields }: Site, option: string, name: string): string {
  if (!fields.has(name))
    throw new InputError(unknownField(`${where}: ${option} names`, fields, name));
  return name;
}

/** Returns the limits of a node that differ from those of what it calls. */
export function limitsOf({
  timeoutMs,
  attempts,
}: {
  readonly timeoutMs?: number | undefined;
  readonly attempts?: number | undefined;
}): Partial<WorkerNode> {
  return {
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(attempts !== undefined && { attempts }),
  };
}
