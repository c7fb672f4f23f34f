import type { GraphCase } from '../core/definition/node-data.js';
import { type Predicate, predicateProblem } from '../core/definition/predicate.js';
import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { NodeCases } from './node-spec.js';

const MAX_CASES = 50;

const made = new WeakSet<object>();

/**
 * Makes the cases of a `choose` node: the exit is the name of the first case that holds, and `else`
 * if none does. A condition can also be data, such as `{ any: [s.urgent.is(true),
 * s.euros.over(100)] }`. Throws an `InputError` if the argument is not an object; `defineGraph`
 * checks the conditions.
 *
 * @example
 * ```ts
 * import { cases, defineGraph } from 'perdure/graphs';
 * import { z } from 'zod';
 *
 * export const sort = defineGraph({
 *   name: 'sort',
 *   state: z.object({ euros: z.number(), urgent: z.boolean().default(false) }),
 *   nodes: ({ choose, run }) => ({
 *     sort: choose({ on: (s) => cases({ urgent: s.urgent.is(true), large: s.euros.over(100) }) }),
 *     mark: run({ run: async () => ({ urgent: true }) }),
 *   }),
 * }).wire({
 *   start: 'sort',
 *   edges: { sort: { urgent: 'end', large: 'mark', else: 'end' }, mark: 'end' },
 * });
 * ```
 */
export function cases<const Given extends Readonly<Record<string, Predicate>>>(
  given: Given,
): NodeCases<Extract<keyof Given, string>> {
  if (!isObject(given)) {
    throw new InputError(`cases: expected { name: condition }, got ${show(given)}`);
  }
  const isCase = (name: string): name is Extract<keyof Given, string> => Object.hasOwn(given, name);
  const list = Object.freeze({
    names: Object.keys(given).filter(isCase),
    when: Object.values<Predicate>(given),
  });
  made.add(list);
  return list;
}

/** Returns what `on` returned as a list. Throws an `InputError` if it is not made by `cases`. */
export function caseList(where: string, given: unknown): readonly GraphCase[] {
  if (!isCases(given)) {
    throw new InputError(`${where}: on: expected cases({ name: condition }), got ${show(given)}`);
  }
  if (given.names.length === 0 || given.names.length > MAX_CASES) {
    throw new InputError(
      `${where}: on: expected 1 to ${MAX_CASES} cases, got ${given.names.length}`,
    );
  }
  return given.names.map((exit, index): GraphCase => {
    const problem = predicateProblem(given.when[index], `${where}: case "${exit}"`);
    if (problem !== null) throw new InputError(problem);
    return { exit, when: given.when[index] ?? { all: [] } };
  });
}

function isCases(given: unknown): given is NodeCases {
  return isObject(given) && made.has(given);
}
