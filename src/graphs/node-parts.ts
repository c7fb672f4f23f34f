import { z } from 'zod';
import { type AnswerContract, answerContract } from '../agents/agent-parts.js';
import type { Agent, AgentOptions, NodeFunction } from '../agents/agent.js';
import type { NodeKind, PlanNode, WorkerNode } from '../core/definition/graph-definition.js';
import { InputError } from '../core/errors.js';
import type { Json } from '../core/text/json.js';
import type { Tool } from '../tools/tool.js';
import { nearestFirst } from '../validation/check-options.js';
import type { AuthorFunction, OptionsOf } from './node-options.js';
import {
  type SavedResult,
  type StateFields,
  assertHolds,
  checkPaths,
  unknownField,
} from './state-schema.js';
import { pathTo, templateOf } from './values.js';

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

/** What a node with a graph saves: the state in which the graph ended. */
export const GRAPH_RESULT = 'an object';

/** What an `each` node saves: one object for each item. */
export const EACH_RESULT = z.array(z.looseObject({ ok: z.boolean() }));

/** Returns the type of what a node with this agent saves; undefined if it is not known. */
export function agentResult(
  agent: string | Agent,
  prompt: string | undefined,
): SavedResult | undefined {
  // An agent by name may be any.
  if (typeof agent === 'string') return undefined;
  if (agent.graph !== undefined) return GRAPH_RESULT;
  const named = prompt === undefined ? undefined : agent.prompts?.get(prompt);
  // A prompt without an output of its own has that of the agent.
  const { answer = agent.answer } = named ?? {};
  const { decide } = agent;
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
function fieldOf(
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

const ATTEMPTS = 5;
const MAX_ACTIONS = 200;
const ACTION_MS = 30_000;

/** Builds a `decide` node, which chooses a tool or replies under a schema. */
export function decideParts(options: OptionsOf<'decide'>, site: Site): Parts {
  const { tools, toolChoice, output, attempts, save, message } = options;
  const common = {
    kind: 'decide',
    ...saveField(site, save, output ?? 'a text'),
    ...(message !== undefined && { message: computed(site, 'message', message) }),
  } as const;
  if (output === undefined) {
    if (attempts !== undefined) {
      throw new InputError(
        `${site.where}: attempts: expected \`output\` with it, got none; remove it`,
      );
    }
    return {
      kind: { ...common, ...(toolChoice === 'required' && { toolChoice }) },
      exits: null,
      optional: ['capped'],
      ...(tools !== undefined && { named: tools }),
    };
  }
  if (tools !== undefined) {
    throw new InputError(
      `${site.where}: tools: expected none with \`output\`, got some; remove one of the two`,
    );
  }
  if (toolChoice !== undefined) {
    throw new InputError(
      `${site.where}: toolChoice: expected none with \`output\`, got "${toolChoice}"; remove one of the two`,
    );
  }
  const contract = withOptionName(site.where, 'output', () => answerContract(site.where, output));
  const { definition } = contract;
  if (definition.type !== 'json')
    throw new InputError(`${site.where}: output: expected a zod type`);
  const { name, schema } = definition;
  return {
    kind: { ...common, output: { name, schema, attempts: attempts ?? ATTEMPTS } },
    exits: ['done'],
    optional: ['failed', 'capped'],
    output: contract,
  };
}

/** Builds a `confirm` node for a text or for a whole plan. */
export function confirmParts(options: OptionsOf<'confirm'>, site: Site): Parts {
  const { show, plan, expires } = options;
  if (show === undefined && plan === undefined) {
    throw new InputError(
      `${site.where}: expected \`show\` or \`plan\`, got none; specify what to confirm`,
    );
  }
  return {
    kind: {
      kind: 'confirm',
      show: show === undefined ? '' : computed(site, 'show', show),
      ...(expires !== undefined && { expiresMs: expires }),
      ...(plan !== undefined && { plan: fieldOf(site, 'plan', plan) }),
    },
    exits: [
      'yes',
      'no',
      ...(plan === undefined ? [] : ['some', 'edit']),
      ...(expires === undefined ? [] : ['expired']),
    ],
    optional: ['capped'],
  };
}

/** Builds a `plan` node. */
export function planParts(options: OptionsOf<'plan'>, site: Site): Parts {
  const { save, answer, planning, maxActions = MAX_ACTIONS, attempts = ATTEMPTS } = options;
  return {
    kind: {
      kind: 'plan',
      planning: planning ?? 'schema',
      save: fieldOf(site, 'save', save, 'an object'),
      ...(answer !== undefined && { answer: fieldOf(site, 'answer', answer, 'a text') }),
      maxActions,
      attempts,
    },
    exits: ['planned', 'answered'],
    optional: ['failed', 'capped'],
  };
}

/** Builds an `execute` node. */
export function executeParts(options: OptionsOf<'execute'>, site: Site): Parts {
  const {
    plan,
    save,
    atOnce = 5,
    timeout: timeoutMs = ACTION_MS,
    onFailedDependency = 'skip',
  } = options;
  return {
    kind: {
      kind: 'execute',
      plan: fieldOf(site, 'plan', plan),
      save: fieldOf(site, 'save', save, 'an object'),
      atOnce,
      timeoutMs,
      onFailedDependency,
    },
    exits: ['done', 'some_failed'],
    optional: ['capped'],
  };
}

/** Builds an `answer` node. */
export function answerParts(options: OptionsOf<'answer'>, site: Site): Parts {
  const { save, plan, results } = options;
  return {
    kind: {
      kind: 'answer',
      save: fieldOf(site, 'save', save, 'a text'),
      ...(plan !== undefined && { plan: fieldOf(site, 'plan', plan) }),
      ...(results !== undefined && { results: fieldOf(site, 'results', results) }),
    },
    exits: ['done'],
    optional: ['capped'],
  };
}

/** Returns how the graph plans; undefined if it does not. All its plan nodes share one prompt. */
export function planningOf(
  nodes: ReadonlyMap<string, BuiltNode>,
): PlanNode['planning'] | undefined {
  const kinds = [...nodes.values()].flatMap(({ kind }) => (kind.kind === 'plan' ? [kind] : []));
  return kinds[0]?.planning;
}

/** Adds the instructions for planning; a template gets them verbatim. */
export function withPlanning(
  given: AgentOptions['instructions'],
  planning: PlanNode['planning'] | undefined,
): AgentOptions['instructions'] {
  const added = planInstructions(planning);
  return typeof given === 'string' && added !== '' ? `${given}\n\n${added}` : given;
}

/** `key`: the property of a reference that holds the id of the action. */
const references = (key: string): string =>
  `Where an argument needs the result of an earlier action, write {"${key}":"a1","path":"data.id"} in its ` +
  'place. `path` selects a part of the result; leave it empty to use the whole result. Never guess an id that a ' +
  'result will have. Refer only to actions of this plan, and only to earlier ones.';

const SCHEMA =
  'You plan, and the system executes. When you are asked for a plan, answer only with JSON such as ' +
  '{"actions":[{"id":"a1","tool":"NAME","arguments":{…},"after":[]}]}. Each action is one tool call ' +
  "with arguments that match the tool's schema. List in `after` the actions that must finish first, in " +
  'addition to those that the arguments refer to; independent actions run in parallel. If there is ' +
  'nothing to do, answer {"actions":[],"answer":"…"} with your answer to the user.';

const CATALOG =
  'You plan, and the system executes. Find the tools that you need, then call each with invoke_tool, in ' +
  'the order in which the actions should happen. Read-only calls are executed immediately, and you get ' +
  'their results as r1, r2, …, in the order of the calls. All other calls are added to the plan and have ' +
  'no result yet. When the plan is complete, say in one sentence what it does. If there is nothing to do, answer the user.';

const CONSENT =
  'The system asks for approval where needed. Plan what was requested, and do not ask for consent yourself.';

/** Returns the planning instructions for a graph's model; empty for a graph without a plan. */
function planInstructions(planning: PlanNode['planning'] | undefined): string {
  if (planning === undefined) return '';
  const isSchema = planning === 'schema';
  return [isSchema ? SCHEMA : CATALOG, references(isSchema ? 'from' : '$ref'), CONSENT].join('\n');
}
