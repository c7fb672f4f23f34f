import type { Agent } from '../agents/agent.js';
import type { NodeFunction } from '../agents/graph-parts.js';
import type { EachBody, NodeKind, WorkerNode } from '../core/graph/definition.js';
import type { Json } from '../core/json.js';
import type { Tool } from '../tools/tool.js';
import { checkOptions } from '../validation/check-options.js';
import { caseList } from './cases.js';
import { eachFunction, routeFunction, runFunction, type AuthorFunction } from './node-function.js';
import { NODE_OPTIONS, type OptionsOf } from './node-options.js';
import { pathTo, templateOf } from './path.js';
import { checkPaths } from './check-paths.js';
import { unknownField, type Fields } from './state-schema.js';

/** A node of which only the targets of its exits are missing. */
export interface BuiltNode {
  readonly kind: NodeKind;
  /** The exits that have to lead somewhere; null: those of a `decide`, which the graph's tools name. */
  readonly exits: readonly string[] | null;
  /** The exits that may be missing. */
  readonly optional: readonly string[];
  readonly common: { readonly label?: string; readonly maxVisits?: number };
  readonly run?: NodeFunction;
  /** The tools that a `decide` names, if it names them. */
  readonly named?: readonly string[];
  readonly agents: readonly Agent[];
  readonly tools: readonly Tool[];
}

/** Where a node is built. */
interface Site {
  /** Begins each message: `graph "mail": node "ask"`. */
  readonly where: string;
  readonly fields: Fields;
}

/** The kinds of nodes. */
export type KindName = keyof typeof NODE_OPTIONS;

type Parts = Pick<BuiltNode, 'kind' | 'exits' | 'optional'> & Partial<BuiltNode>;

const BUILDERS: { readonly [Kind in KindName]: (options: OptionsOf<Kind>, site: Site) => Parts } = {
  run: (options, { where, fields }) => ({
    kind: { kind: 'run', ...workerNode(options) },
    exits: ['done'],
    optional: ['failed', 'capped'],
    run: runFunction(where, fields, options.run),
  }),
  route: (options, { where, fields }) => ({
    kind: { kind: 'route', ...workerNode(options) },
    exits: options.exits,
    optional: ['failed', 'capped'],
    run: routeFunction(where, { fields, exits: options.exits }, options.run),
  }),
  choose: ({ on }, { where, fields }) => {
    const cases = caseList(
      where,
      inOwnWords(where, 'on', () => on(pathTo('$path'))),
    );
    for (const { when } of cases) checkPaths(where, { fields, key: 'path' }, when);
    return {
      kind: { kind: 'choose', cases },
      exits: [...cases.map(({ exit }) => exit), 'else'],
      optional: ['capped'],
    };
  },
  agent: ({ agent, message, save }, site) => ({
    kind: {
      kind: 'agent',
      agent: nameOf(agent),
      message: computed(site, 'message', message),
      ...saved(site, save),
    },
    exits: ['done', 'stopped', 'failed'],
    optional: ['capped'],
    agents: objectOf(agent),
  }),
  graph: ({ graph, input, save }, site) => ({
    kind: {
      kind: 'graph',
      graph: nameOf(graph),
      input: computed(site, 'input', input),
      ...saved(site, save),
    },
    exits: ['done', 'stopped', 'failed'],
    optional: ['capped'],
    agents: objectOf(graph),
  }),
  decide: ({ tools, save }, site) => ({
    kind: { kind: 'decide', ...saved(site, save) },
    exits: null,
    optional: ['capped'],
    ...(tools !== undefined && { named: tools }),
  }),
  tool: ({ tool, arguments: given, save }, site) => ({
    kind: {
      kind: 'tool',
      tool: nameOf(tool),
      ...(given !== undefined && { arguments: computed(site, 'arguments', given) }),
      ...saved(site, save),
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
      ...saved(site, options.save),
    },
    exits: ['done'],
    optional: ['failed', 'capped'],
    ...(options.run && { run: eachFunction(site.where, site.fields, options.run) }),
    agents: [...objectOf(options.agent), ...objectOf(options.graph)],
    tools: objectOf(options.tool),
  }),
  confirm: ({ show, expires }, site) => ({
    kind: {
      kind: 'confirm',
      show: computed(site, 'show', show),
      ...(expires !== undefined && { expiresMs: expires }),
    },
    exits: ['yes', 'no', ...(expires === undefined ? [] : ['expired'])],
    optional: ['capped'],
  }),
};

/** Checks the options of a node and builds it. Throws an `Error` that names graph, node, and option. */
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
  const { run, agent, graph, tool } = options;
  const bodies = Object.entries({ run, agent, graph, tool }).filter(
    ([, body]) => body !== undefined,
  );
  if (bodies.length !== 1) {
    const given = bodies.map(([name]) => name).join(' and ') || 'none';
    throw new Error(`${site.where}: expected one of run, agent, graph, and tool, got ${given}`);
  }
  if (agent !== undefined) {
    const message = computed(site, 'message', options.message, true);
    return { kind: 'agent', agent: nameOf(agent), message };
  }
  if (graph !== undefined) {
    return {
      kind: 'graph',
      graph: nameOf(graph),
      input: computed(site, 'input', options.input, true),
    };
  }
  if (tool !== undefined) {
    const given = computed(site, 'arguments', options.arguments, true);
    return { kind: 'tool', tool: nameOf(tool), arguments: given };
  }
  return { kind: 'run', ...workerNode(options) };
}

interface CommonOptions {
  readonly label?: string | undefined;
  readonly maxVisits?: number | undefined;
}

/** Returns `save`. Throws an `Error` if the state has no such field. */
function saved({ where, fields }: Site, save: string | undefined): { readonly save?: string } {
  if (save === undefined) return {};
  if (!fields.has(save)) throw new Error(unknownField(`${where}: save names`, fields, save));
  return { save };
}

function workerNode({
  attempts = 3,
  timeoutMs = 120_000,
}: {
  readonly attempts?: number | undefined;
  readonly timeoutMs?: number | undefined;
}): WorkerNode {
  return { timeoutMs, attempts };
}

/** Returns what an option computes, as JSON: it is called once, with places in place of values. */
function computed(
  { where, fields }: Site,
  option: string,
  compute: AuthorFunction | undefined,
  withItem = false,
): Json {
  if (compute === undefined) throw new Error(`${where}: ${option}: expected a function, got none`);
  const given = withItem ? [pathTo('$path'), pathTo('$item')] : [pathTo('$path')];
  const value = templateOf(
    inOwnWords(where, option, () => compute(...given)),
    `${where}: ${option}`,
  );
  checkPaths(`${where}: ${option}`, { fields, key: '$path' }, value);
  return value;
}

/** Calls a function; what it throws names the node and the option. */
function inOwnWords(where: string, option: string, call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${where}: ${option}: ${reason}`, { cause: error });
  }
}

function nameOf(given: string | { readonly name: string }): string {
  return typeof given === 'string' ? given : given.name;
}

function objectOf<Given extends object>(given: string | Given | undefined): readonly Given[] {
  return given === undefined || typeof given === 'string' ? [] : [given];
}
