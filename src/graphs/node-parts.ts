import { z } from 'zod';
import { answerContract } from '../agents/agent-parts.js';
import type { Agent } from '../agents/agent.js';
import type { WorkerNode } from '../core/definition/node-data.js';
import { InputError } from '../core/errors.js';
import type { Json } from '../core/text/json.js';
import type { Tool } from '../tools/tool.js';
import { durableDuration, timerDuration } from '../validation/check-options.js';
import { namesHint } from '../validation/near-names.js';
import {
  type AuthorFunction,
  MAX_ATTEMPTS,
  MAX_AT_ONCE,
  type Site,
  authorFunction,
  commonOptions,
  nodeKind,
  outputType,
  saveOption,
} from './node-options.js';
import { type SavedResult, assertHolds, checkPaths, unknownField } from './state-schema.js';
import { pathTo, templateOf } from './values.js';

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
    throw new InputError(
      `${where}: prompt: expected a prompt of agent "${nameOf(agent)}", got "${prompt}" (${namesHint(prompt, prompts)}); correct the name`,
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
const ACTIONS = 200;
const MAX_ACTIONS = 500;
const ACTION_MS = 30_000;

/** A `decide` node, which chooses a tool or replies under a schema. */
export const decideKind = nodeKind(
  'decide',
  z.strictObject({
    tools: z.array(z.string()).optional(),
    toolChoice: z.enum(['auto', 'required']).optional(),
    message: authorFunction.optional(),
    output: outputType.optional(),
    attempts: z.int().min(1).max(MAX_ATTEMPTS).optional(),
    ...saveOption,
    ...commonOptions,
  }),
  (options, site) => {
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
  },
);

/** A `confirm` node, for a text or for a whole plan. */
export const confirmKind = nodeKind(
  'confirm',
  z.strictObject({
    show: authorFunction.optional(),
    plan: z.string().optional(),
    expires: durableDuration.optional(),
    ...commonOptions,
  }),
  (options, site) => {
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
  },
);

export const planKind = nodeKind(
  'plan',
  z.strictObject({
    save: z.string(),
    answer: z.string().optional(),
    planning: z.enum(['schema', 'catalog']).optional(),
    maxActions: z.int().min(1).max(MAX_ACTIONS).optional(),
    attempts: z.int().min(1).max(MAX_ATTEMPTS).optional(),
    ...commonOptions,
  }),
  (options, site) => {
    const { save, answer, planning, maxActions = ACTIONS, attempts = ATTEMPTS } = options;
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
  },
);

export const executeKind = nodeKind(
  'execute',
  z.strictObject({
    plan: z.string(),
    save: z.string(),
    atOnce: z.int().min(1).max(MAX_AT_ONCE).optional(),
    timeout: timerDuration.optional(),
    onFailedDependency: z.enum(['skip', 'fail', 'null']).optional(),
    ...commonOptions,
  }),
  (options, site) => {
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
  },
);

export const answerKind = nodeKind(
  'answer',
  z.strictObject({
    save: z.string(),
    plan: z.string().optional(),
    results: z.string().optional(),
    ...commonOptions,
  }),
  (options, site) => {
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
  },
);
