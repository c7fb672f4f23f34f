import type { NodeFunction, NodeResult } from '../agents/graph-parts.js';
import type { NodeContext } from '../tools/tool.js';
import type { Json } from '../core/json.js';
import { isObject } from '../core/json.js';
import { show } from '../core/text/format-value.js';
import { returnedJson } from './json-value.js';
import { checkedPatch, parsedState, type StateFields } from './state-schema.js';

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
