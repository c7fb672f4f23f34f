import type { EachBody, GraphCase } from '../core/definition/graph-definition.js';
import { type Predicate, predicateProblem } from '../core/definition/predicate.js';
import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { checkOptions } from '../validation/check-options.js';
import {
  NODE_OPTIONS,
  type OptionsOf,
  eachFunction,
  routeFunction,
  toRunNode,
} from './node-options.js';
import {
  type BuiltNode,
  type Parts,
  type Site,
  agentResult,
  answerParts,
  computed,
  confirmParts,
  decideParts,
  executeParts,
  limitsOf,
  messageParts,
  nameOf,
  objectOf,
  planParts,
  saveField,
  EACH_RESULT,
  GRAPH_RESULT,
  toolResult,
  withOptionName,
  workerNode,
} from './node-parts.js';
import type { NodeCases } from './node-spec.js';
import { checkPaths } from './state-schema.js';
import { pathTo } from './values.js';

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
function caseList(where: string, given: unknown): readonly GraphCase[] {
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

/** The kinds of nodes. */
export type KindName = keyof typeof NODE_OPTIONS;

const BUILDERS: { readonly [Kind in KindName]: (options: OptionsOf<Kind>, site: Site) => Parts } = {
  run: (options, { where, fields }) => ({
    kind: { kind: 'run', ...workerNode(options) },
    exits: ['done'],
    optional: ['failed', 'capped'],
    run: toRunNode(where, fields, options.run),
  }),
  route: (options, { where, fields }) => ({
    kind: { kind: 'route', ...workerNode(options) },
    exits: options.exits,
    optional: ['failed', 'capped'],
    run: routeFunction(where, { fields, exits: options.exits }, options.run),
  }),
  choose: ({ on }, { where, fields }) => {
    const list = caseList(
      where,
      withOptionName(where, 'on', () => on(pathTo('$path'))),
    );
    for (const { when } of list) checkPaths(where, { fields, key: 'path' }, when);
    return {
      kind: { kind: 'choose', cases: list },
      exits: [...list.map(({ exit }) => exit), 'else'],
      optional: ['capped'],
    };
  },
  agent: ({ agent, message, prompt, args, save, continues, timeout }, site) => ({
    kind: {
      kind: 'agent',
      agent: nameOf(agent),
      ...messageParts(site, { agent, message, prompt, args }),
      ...saveField(site, save, agentResult(agent, prompt)),
      ...(continues && { continues }),
      ...limitsOf({ timeout }),
    },
    exits: ['done', 'stopped', 'failed'],
    optional: ['capped'],
    agents: objectOf(agent),
  }),
  graph: ({ graph, input, save, timeout }, site) => ({
    kind: {
      kind: 'graph',
      graph: nameOf(graph),
      input: computed(site, 'input', input),
      ...saveField(site, save, GRAPH_RESULT),
      ...limitsOf({ timeout }),
    },
    exits: ['done', 'stopped', 'failed'],
    optional: ['capped'],
    agents: objectOf(graph),
  }),
  decide: decideParts,
  tool: ({ tool, arguments: given, save, timeout, attempts }, site) => ({
    kind: {
      kind: 'tool',
      tool: nameOf(tool),
      ...(given !== undefined && { arguments: computed(site, 'arguments', given) }),
      ...saveField(site, save, toolResult(tool)),
      ...limitsOf({ timeout, attempts }),
    },
    exits: ['done'],
    optional: ['failed', 'capped'],
    tools: objectOf(tool),
  }),
  each: (options, site) => ({
    kind: {
      kind: 'each',
      over: computed(site, 'over', options.over),
      atOnce: options.atOnce ?? 5,
      body: eachBody(options, site),
      ...saveField(site, options.save, EACH_RESULT),
    },
    exits: ['done'],
    optional: ['failed', 'capped'],
    ...(options.run && { run: eachFunction(site.where, site.fields, options.run) }),
    agents: [...objectOf(options.agent), ...objectOf(options.graph)],
    tools: objectOf(options.tool),
  }),
  confirm: confirmParts,
  plan: planParts,
  execute: executeParts,
  answer: answerParts,
};

/**
 * Checks the options of a node and builds it. Throws an `InputError` that names graph, node, and
 * option.
 */
export function buildNode(kind: KindName, options: object, site: Site): BuiltNode {
  checkOptions(site.where, { schema: NODE_OPTIONS[kind], options });
  const { parts, common } = partsOf(kind, options, site);
  const { label, maxVisits } = common;
  return {
    agents: [],
    tools: [],
    ...parts,
    common: {
      ...(label !== undefined && { label }),
      ...(maxVisits !== undefined && { maxVisits }),
    },
  };
}

/** Builds a node of one kind; the parameter ties the schema to the builder. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- without it, they are unions
function partsOf<Kind extends KindName>(
  kind: Kind,
  options: object,
  site: Site,
): { readonly parts: Parts; readonly common: CommonOptions } {
  const schema: (typeof NODE_OPTIONS)[Kind] = NODE_OPTIONS[kind];
  const build: (typeof BUILDERS)[Kind] = BUILDERS[kind];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema of this very kind
  const checked = schema.parse(options) as OptionsOf<Kind>;
  return { parts: build(checked, site), common: checked };
}

function eachBody(options: OptionsOf<'each'>, site: Site): EachBody {
  const { run, agent, graph, tool, timeout } = options;
  const bodies = Object.entries({ run, agent, graph, tool }).filter(
    ([, body]) => body !== undefined,
  );
  if (bodies.length !== 1) {
    const given = bodies.map(([name]) => name).join(' and ') || 'none';
    throw new InputError(
      `${site.where}: expected one of run, agent, graph, and tool, got ${given}`,
    );
  }
  if (agent !== undefined) {
    const { message, prompt, args } = options;
    const input = messageParts(site, { agent, message, prompt, args }, true);
    return { kind: 'agent', agent: nameOf(agent), ...input, ...limitsOf({ timeout }) };
  }
  if (graph !== undefined) {
    return {
      kind: 'graph',
      graph: nameOf(graph),
      input: computed(site, 'input', options.input, true),
      ...limitsOf({ timeout }),
    };
  }
  if (tool !== undefined) {
    const given = computed(site, 'arguments', options.arguments, true);
    return { kind: 'tool', tool: nameOf(tool), arguments: given, ...limitsOf(options) };
  }
  return { kind: 'run', ...workerNode(options) };
}

interface CommonOptions {
  readonly label?: string | undefined;
  readonly maxVisits?: number | undefined;
}
