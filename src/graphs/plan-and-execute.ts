import { z } from 'zod';
import type { AgentOptions } from '../agents/agent.js';
import type { Duration } from '../core/text/text.js';
import type { Tool } from '../tools/tool.js';
import { type OptionSchemas, anyFunction, checkOptions } from '../validation/check-options.js';
import { cases } from './cases.js';
import type { GraphKinds } from './node-kinds.js';
import { defineGraph } from './define-graph.js';
import {
  type GraphOf,
  PASSED_SCHEMAS,
  type PassedOption,
  passedOptions,
  refuseAgentOptions,
} from './graph-options.js';
import { type ExecuteNodeOptions, type PlanNodeOptions, planState } from './node-spec.js';
import type { GraphPatchOf, GraphStateOf } from './values.js';

/** The state of the graph that `planAndExecute` makes. */
const agentState = z.object({
  /** The text of the user's message. */
  message: z.string().default(''),
  ...planState,
  /** If a node before the plan fills it, nothing is planned. */
  answer: z.string().optional(),
  /** A node before the plan sets it with an answer to keep the turn out of later prompts. */
  refused: z.boolean().optional(),
  error: z.object({ node: z.string(), type: z.string(), message: z.string() }).optional(),
});

/** The shape of the state of a graph that `planAndExecute` makes. */
type PlanStateShape = typeof agentState;

/** A node before the plan that may answer at once, or change the message to plan for. */
type BeforePlan = (
  state: GraphStateOf<PlanStateShape>,
) => Promise<GraphPatchOf<PlanStateShape>> | GraphPatchOf<PlanStateShape>;

/** Options of `planAndExecute`. */
export interface PlanAndExecuteOptions extends Pick<AgentOptions, 'agents' | PassedOption> {
  /** As for agents; graphs and agents share one namespace. */
  readonly name: string;
  readonly instructions: string;
  /** What can be planned, next to the tools of `mcp` and the agents of `agents`. Default: none. */
  readonly tools?: readonly Tool[];
  /** Default: `schema` for up to 12 tools and agents without `mcp`, else `catalog`. */
  readonly planning?: PlanNodeOptions<PlanStateShape>['planning'];
  /**
   * When the user is asked to approve the whole plan: if the rules ask about one of its actions
   * (`when_asked`, default), or for every plan (`always`). `expires`: the user's time to
   * answer, as a `Duration`; default '7 days'.
   */
  readonly confirm?: { readonly when?: 'when_asked' | 'always'; readonly expires?: Duration };
  /** The maximum number of actions at the same time, 1 to 50; default 5. */
  readonly atOnce?: number;
  /** How long one action may take. A duration: ms, or words such as '30 seconds', the default. */
  readonly timeout?: Duration;
  /**
   * What happens to an action whose input comes from a failed one, as for an `execute` node;
   * default `skip`.
   */
  readonly onFailedDependency?: ExecuteNodeOptions<PlanStateShape>['onFailedDependency'];
}

/** An agent that plans, asks, and executes. It is a graph that can be changed before it is used. */
export interface PlanAndExecute extends GraphOf<PlanStateShape> {
  /**
   * Returns the same graph with a node before the plan. If it fills `answer`, that is the answer,
   * and nothing is planned. With `refused: true` as well, the turn's message and the answer stay
   * out of later prompts; the transcript keeps them.
   */
  with(change: { readonly before: { readonly plan: BeforePlan } }): PlanAndExecute;
}

const planAndExecuteOptions = z.strictObject({
  name: z.unknown(),
  instructions: z.unknown(),
  tools: z.unknown().optional(),
  planning: z.enum(['schema', 'catalog']).optional(),
  confirm: z
    .strictObject({
      when: z.enum(['when_asked', 'always']).optional(),
      expires: z.unknown().optional(),
    })
    .optional(),
  // `defineGraph` and the nodes check these.
  atOnce: z.unknown().optional(),
  timeout: z.unknown().optional(),
  onFailedDependency: z.unknown().optional(),
  ...PASSED_SCHEMAS,
} satisfies OptionSchemas<PlanAndExecuteOptions>);

const changeOptions = z.strictObject({ before: z.strictObject({ plan: anyFunction }) });

/** With at most this many tools, all their schemas are in the prompt. */
const MAX_SHOWN_TOOLS = 12;

/** The maximum number of questions about a plan and the plans that replace it. */
const MAX_QUESTIONS = 10;

/**
 * Makes an agent that plans before it acts: the model writes a plan of tool calls, the plan is
 * checked, a person approves all or a part of it where the rules ask, independent calls run at the
 * same time, and the model reports. Every step is durable, and exactly the calls that were shown
 * are made.
 *
 * Throws an `InputError` that names the graph and the option if the definition is invalid.
 *
 * @example
 * ```ts
 * import { defineTool } from 'perdure';
 * import { planAndExecute } from 'perdure/graphs';
 * import { z } from 'zod';
 *
 * const createTask = defineTool({
 *   name: 'create_task',
 *   description: 'Creates a task.',
 *   input: z.object({ title: z.string() }),
 *   effect: 'once',
 *   execute: async ({ title }) => ({ id: 't1', title }),
 * });
 *
 * export const assistant = planAndExecute({
 *   name: 'assistant',
 *   instructions: 'You manage the tasks of the user.',
 *   model: 'gpt-5-mini',
 *   tools: [createTask],
 *   rules: [{ tool: 'delete_*', then: 'ask' }],
 * });
 * ```
 */
export function planAndExecute(options: PlanAndExecuteOptions): PlanAndExecute {
  refuseAgentOptions('planAndExecute', options);
  checkOptions('planAndExecute', { schema: planAndExecuteOptions, options });
  return withBefore(options, null);
}

function withBefore(options: PlanAndExecuteOptions, before: BeforePlan | null): PlanAndExecute {
  return Object.freeze({
    ...build(options, before),
    with: (change: { readonly before: { readonly plan: BeforePlan } }): PlanAndExecute => {
      const where = `planAndExecute "${options.name}": with`;
      checkOptions(where, { schema: changeOptions, options: change });
      return withBefore(options, change.before.plan);
    },
  });
}

/** Returns the nodes that every such graph has. */
function planNodes(kinds: GraphKinds<PlanStateShape>, options: PlanAndExecuteOptions) {
  const {
    tools,
    agents,
    mcp,
    planning,
    confirm: confirmation = {},
    atOnce,
    timeout,
    onFailedDependency,
  } = options;
  const { when = 'when_asked', expires = '7 days' } = confirmation;
  // How many tools an MCP server has is known only when a run begins.
  const isMany = count(tools) + count(agents) > MAX_SHOWN_TOOLS || count(mcp) > 0;
  const { choose, plan, confirm, execute, answer } = kinds;
  return {
    plan: plan({
      save: 'plan',
      answer: 'answer',
      planning: planning ?? (isMany ? 'catalog' : 'schema'),
    }),
    needs_approval: choose({
      on: (s) => cases({ yes: when === 'always' ? s.plan.exists() : ASKS }),
    }),
    confirm: confirm({ plan: 'plan', expires, maxVisits: MAX_QUESTIONS }),
    execute: execute({
      plan: 'plan',
      save: 'results',
      ...(atOnce !== undefined && { atOnce }),
      ...(timeout !== undefined && { timeout }),
      ...(onFailedDependency !== undefined && { onFailedDependency }),
    }),
    answer: answer({ save: 'answer', plan: 'plan', results: 'results' }),
  };
}

/** `defineGraph` refuses a value that is not a list. */
function count(list: unknown): number {
  return Array.isArray(list) ? list.length : 0;
}

/** Holds if the rules ask about an action of the plan. */
const ASKS = { op: 'eq', path: 'plan.asks', value: true } as const;

const EDGES = {
  plan: { planned: 'needs_approval', answered: 'answer', failed: 'answer' },
  needs_approval: { yes: 'confirm', else: 'execute' },
  confirm: {
    yes: 'execute',
    no: 'execute',
    some: 'execute',
    edit: 'plan',
    expired: 'answer',
    capped: 'answer',
  },
  execute: { done: 'answer', some_failed: 'answer' },
  answer: 'end',
} as const;

function build(options: PlanAndExecuteOptions, before: BeforePlan | null): GraphOf<PlanStateShape> {
  const { name, instructions, tools = [], agents } = options;
  const base = {
    name,
    instructions,
    tools,
    ...(agents !== undefined && { agents }),
    ...passedOptions(options),
    state: agentState,
    messageTo: 'message',
    answerFrom: 'answer',
    refusedFrom: 'refused',
    errorTo: 'error',
    perTurn: ['message', 'plan', 'results', 'answer', 'error'],
  } as const;
  if (before === null) {
    const graph = defineGraph({ ...base, nodes: (kinds) => planNodes(kinds, options) });
    return graph.wire({ start: 'plan', edges: EDGES });
  }
  const graph = defineGraph({
    ...base,
    nodes: (kinds) => ({
      before: kinds.run({ run: async (state) => await before(state) }),
      answered: kinds.choose({ on: (s) => cases({ answered: s.answer.exists() }) }),
      ...planNodes(kinds, options),
    }),
  });
  return graph.wire({
    start: 'before',
    edges: {
      before: { done: 'answered', failed: 'answer' },
      answered: { answered: 'answer', else: 'plan' },
      ...EDGES,
    },
  });
}
