import { z } from 'zod';
import type { AnswerContract } from '../agents/agent-parts.js';
import type { Agent, NodeFunction, NodeResult } from '../agents/agent.js';
import { isAgent, notAnAgent } from '../agents/given-agent.js';
import type { NodeKind } from '../core/definition/node-kinds.js';
import { type Json, isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { type NodeContext, type Tool, isTool } from '../tools/tool.js';
import { checkOptions, expected, timerDuration } from '../validation/check-options.js';
import type { NodeSpec } from './node-spec.js';
import { type StateFields, checkedPatch, parsedState } from './state-schema.js';
import { returnedJson } from './values.js';

/** An author's function; its own types are checked where it is written. */
export type AuthorFunction = (...given: readonly unknown[]) => unknown;

/** Returns the function of a `run` node. */
export function toRunNode(where: string, fields: StateFields, run: AuthorFunction): NodeFunction {
  return async ({ state }, context): Promise<NodeResult> => {
    const returned = await run(await parsedState(where, fields, state), context);
    return { patch: await checkedPatch(where, fields, returned) };
  };
}

/** Returns the function of a `route` node. */
export function routeFunction(
  where: string,
  { fields, exits }: { readonly fields: StateFields; readonly exits: readonly string[] },
  run: AuthorFunction,
): NodeFunction {
  return async ({ state }, context): Promise<NodeResult> => {
    const chosen = new Set<unknown>();
    const exit = (name: unknown, patch: unknown): unknown => {
      const choice = Object.freeze({ exit: name, patch });
      chosen.add(choice);
      return choice;
    };
    const returned = await run(await parsedState(where, fields, state), contextWith(context, exit));
    if (!isObject(returned) || !chosen.has(returned)) {
      throw new Error(
        `${where}: expected \`return exit('${exits[0] ?? ''}')\`, got ${show(returned)}`,
      );
    }
    const name = returned['exit'];
    if (typeof name !== 'string' || !exits.includes(name)) {
      throw new Error(`${where} left through ${show(name)}; its exits are ${exits.join(', ')}`);
    }
    return { exit: name, patch: await checkedPatch(where, fields, returned['patch']) };
  };
}

function contextWith(context: NodeContext, exit: unknown): object {
  return { ...context, exit };
}

/** Returns the function of an `each` node, which computes the value for one item. */
export function eachFunction(
  where: string,
  fields: StateFields,
  run: AuthorFunction,
): NodeFunction {
  return async ({ state, item }, context): Promise<NodeResult> => {
    const returned = await run(await parsedState(where, fields, state), item, context);
    const value: Json = returned === undefined ? null : returnedJson(returned, `${where} returned`);
    return { value };
  };
}

export const MAX_ATTEMPTS = 100;
const MAX_VISITS = 10_000;
const MAX_LABEL_CHARACTERS = 200;
export const MAX_AT_ONCE = 50;

export const authorFunction = expected<AuthorFunction>(
  'a function',
  (value) => typeof value === 'function',
);
export const agentName: z.ZodType<string | Agent> = z.custom<string | Agent>(
  (value) => isAgent(value) || (typeof value === 'string' && /^[\w.-]{1,64}$/.test(value)),
  {
    error: ({ input }) => notAnAgent(input) ?? 'expected the name of an agent or an agent',
    abort: true,
  },
);
export const toolName = expected<string | Tool>(
  'the name of a tool or a tool; make it with defineTool({…})',
  (value) => isTool(value) || (typeof value === 'string' && value !== ''),
);

export const outputType = expected<z.ZodType>(
  'a zod type of the reply, such as z.object({…})',
  (value) => value instanceof z.ZodType,
);

export const commonOptions = {
  label: z.string().min(1).max(MAX_LABEL_CHARACTERS).optional(),
  maxVisits: z.int().min(1).max(MAX_VISITS).optional(),
};
export const workerOptions = {
  attempts: z.int().min(1).max(MAX_ATTEMPTS).optional(),
  timeout: timerDuration.optional(),
};
export const saveOption = { save: z.string().optional() };

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
export type Parts<Kind extends NodeKind['kind']> = Pick<BuiltNode, 'exits' | 'optional'> &
  Partial<BuiltNode> & { readonly kind: Extract<NodeKind, { kind: Kind }> };

/** What a call such as `run({…})` of an author becomes once the node has a name. */
const made = new WeakMap<object, (site: Site) => BuiltNode>();

/** Returns how a node is built; undefined if no kind made the value. */
export function builderOf(spec: object): ((site: Site) => BuiltNode) | undefined {
  return made.get(spec);
}

/**
 * Returns the function with which authors make nodes of one kind. The options are checked once the
 * nodes have names. A caller may be JavaScript, so types alone are not enough.
 */
export function nodeKind<Kind extends NodeKind['kind'], Options extends object>(
  kind: Kind,
  schema: z.ZodType<Options>,
  build: (options: Options, site: Site) => Parts<Kind>,
): (options: object) => NodeSpec<never, never> {
  return (options) => {
    const spec = Object.freeze({ kind, options });
    made.set(spec, (site) => {
      checkOptions(site.where, { schema, options });
      const { label, maxVisits } = z.object(commonOptions).parse(options);
      return {
        agents: [],
        tools: [],
        ...build(schema.parse(options), site),
        common: {
          ...(label !== undefined && { label }),
          ...(maxVisits !== undefined && { maxVisits }),
        },
      };
    });
    return spec;
  };
}
