import type { AgentDefinition } from '../definition/definition.js';
import type { ToolDefinition, CatalogEntry } from '../definition/tool-definition.js';
import { isObject, parseJson } from '../text/json.js';
import type { PromptMessage, ToolCall } from './messages.js';
import { type CallResult, refusal } from './call-result.js';

/** A tool as a model sees it. */
export type ShownTool = Pick<ToolDefinition, 'name' | 'description' | 'parameters'>;

export const DISCOVER_TOOLS = 'discover_tools';
export const TOOL_SCHEMA = 'tool_schema';
export const INVOKE = 'invoke_tool';

const texts = { type: 'array', items: { type: 'string' } };

/** The tools that a model with a catalog sees in place of the agent's tools. Sorted by name. */
const CATALOG_TOOLS: readonly ShownTool[] = [
  {
    name: DISCOVER_TOOLS,
    description:
      'Lists the available tools with summaries. Filters are optional; a tool must match every ' +
      'filter, and one value of a list is enough.',
    parameters: {
      type: 'object',
      properties: {
        categories: texts,
        actions: { ...texts, description: 'such as read, search, list, create, write, delete' },
        query: { type: 'string', description: 'words in the name or the summary' },
      },
      additionalProperties: false,
    },
  },
  {
    name: INVOKE,
    description:
      'Calls a tool. Read its tool_schema first, unless you know it. Call read_result the same ' +
      'way when a truncated text refers to it.',
    parameters: {
      type: 'object',
      properties: {
        tool: { type: 'string', description: 'the name of the tool' },
        arguments: { type: 'object', description: "arguments that match the tool's schema" },
      },
      required: ['tool', 'arguments'],
      additionalProperties: false,
    },
  },
  {
    name: TOOL_SCHEMA,
    description: 'Describes one tool and its arguments as a JSON schema.',
    parameters: {
      type: 'object',
      properties: { name: { type: 'string' } },
      required: ['name'],
      additionalProperties: false,
    },
  },
];

/** Names that no tool of an agent with a catalog may have. */
export const CATALOG_NAMES: readonly string[] = CATALOG_TOOLS.map(({ name }) => name);

type Exposed = Pick<AgentDefinition, 'tools' | 'toolExposure'>;

/** Whether the model sees a catalog in place of the agent's tools. */
export function hasCatalog({ tools, toolExposure }: Exposed): boolean {
  return toolExposure === 'catalog' && tools.length > 0;
}

/** Returns the tools that a model sees. */
export function shownTools(definition: Exposed): readonly ShownTool[] {
  if (hasCatalog(definition)) return CATALOG_TOOLS;
  return definition.tools.map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }));
}

/** Returns the tools that a call may name, including those in a catalog. */
export function callableTools(definition: Exposed): readonly ShownTool[] {
  return hasCatalog(definition) ? [...CATALOG_TOOLS, ...definition.tools] : definition.tools;
}

/**
 * Whether the call is to the catalog. The workflow answers such calls from the pinned definition.
 */
export function isCatalogCall(definition: Exposed, { name }: Pick<ToolCall, 'name'>): boolean {
  return hasCatalog(definition) && CATALOG_NAMES.includes(name);
}

/**
 * Returns the messages in the form for a model with a catalog. A call by `invoke_tool` is recorded
 * as a call of the real tool and shown in its original form. Each message is converted alone, so
 * the prompt's prefix stays the same from step to step.
 */
export function withInvocations(
  definition: Exposed,
  messages: readonly PromptMessage[],
): readonly PromptMessage[] {
  if (!hasCatalog(definition)) return messages;
  return messages.map((message) =>
    message.role === 'assistant' && message.calls
      ? { ...message, calls: message.calls.map(toInvocation) }
      : message,
  );
}

/** Returns the call in its original form. Its arguments are canonical JSON, with sorted keys. */
function toInvocation({ via, ...call }: ToolCall): ToolCall {
  if (via === undefined) return call;
  const tool = JSON.stringify(call.name);
  return { ...call, name: INVOKE, arguments: `{"arguments":${call.arguments},"tool":${tool}}` };
}

/** The maximum number of tools in one answer; further ones are only counted. */
const MAX_ROWS = 50;
/** The maximum number of existing and unknown filter values in a hint. */
const MAX_KNOWN = 40;
const MAX_UNKNOWN = 5;
const VALUE_CHARACTERS = 64;
const QUERY_CHARACTERS = 200;
const FILTERS = ['categories', 'actions', 'query'];

type Tools = Pick<AgentDefinition, 'tools'>;
/** A listed tool. A tool that the engine adds, such as `read_result`, has no entry. */
type Listed = ToolDefinition & { readonly catalog: CatalogEntry };
type Arguments = Readonly<Record<string, unknown>>;
type Answer =
  | { readonly ok: true; readonly value: object }
  | { readonly ok: false; readonly message: string };

/** Returns the result of a call to the catalog, from the pinned definition alone. */
export function catalogAnswer(definition: Tools, call: ToolCall): CallResult {
  // Arguments in the blob store are too long to be useful here.
  const given = call.blob === undefined ? parseJson(call.arguments) : undefined;
  const answer = isObject(given)
    ? answerQuestion(definition, call.name, given)
    : wrong(`The arguments of ${call.name} are too long.`);
  if (answer.ok) {
    return { id: call.id, ok: true, text: JSON.stringify(answer.value), executed: false };
  }
  return refusal(call.id, { type: 'invalid_arguments', message: answer.message });
}

/** Returns the answer of a catalog tool. `name` is the tool's name. */
export function answerQuestion(definition: Tools, name: string, args: Arguments): Answer {
  if (name === DISCOVER_TOOLS) return discover(definition, args);
  if (name === TOOL_SCHEMA) return toolSchema(definition, args);
  return wrong(`${name} takes {"tool": "<name>", "arguments": {…}}.`);
}

/**
 * Returns the tools that match every given filter, sorted by name. At least one value of a list
 * must match. A value that no tool has matches nothing, and the hint names the existing values.
 * Each word of `query` must occur in the name or the summary, regardless of case.
 */
function discover(definition: Tools, args: Arguments): Answer {
  const stray = Object.keys(args).find((key) => !FILTERS.includes(key));
  if (stray !== undefined) {
    return wrong(`Unknown filter ${shown(stray)}; available: ${FILTERS.join(', ')}.`);
  }
  const categories = readFilter(args['categories']);
  const actions = readFilter(args['actions']);
  const query = args['query'] ?? '';
  if (categories === undefined || actions === undefined || typeof query !== 'string') {
    return wrong('categories and actions must be lists of strings, and query must be a string.');
  }
  const words = query.slice(0, QUERY_CHARACTERS).toLowerCase().split(/\s+/);
  const all = definition.tools.filter(isListed);
  const found = all.filter(
    ({ name, catalog }) =>
      matches(categories, [catalog.category]) &&
      matches(actions, catalog.actions) &&
      words.every((word) => `${name}\n${catalog.summary}`.toLowerCase().includes(word)),
  );
  const hint = [
    ...unknown(
      'category',
      categories,
      filterValues(all, ({ category }) => [category]),
    ),
    ...unknown(
      'action',
      actions,
      filterValues(all, (entry) => entry.actions),
    ),
    ...next(found, all),
  ].join(' ');
  return right({ tools: found.slice(0, MAX_ROWS).map(row), count: found.length, hint });
}

function row({ name, effect, ends, catalog: { summary, category } }: Listed): object {
  return { name, summary, category, effect, ...(ends && { ends }) };
}

/** The hint on how to use an answer. */
function next(found: readonly Listed[], all: readonly Listed[]): readonly string[] {
  if (found.length === 0)
    return [`No tool matches; without filters, all ${all.length} are listed.`];
  const how = `Read the ${TOOL_SCHEMA} of the one you need, then ${INVOKE}.`;
  if (found.length <= MAX_ROWS) return [how];
  const categories = named(filterValues(found, ({ category }) => [category]));
  return [
    `These are the first ${MAX_ROWS} of ${found.length}; narrow them down by query or by category: ${categories}.`,
    how,
  ];
}

/**
 * Returns one tool's description and schema. The worker has already refused unknown names and
 * suggested the nearest ones.
 */
function toolSchema({ tools }: Tools, args: Arguments): Answer {
  const name = requestedTool(args);
  if (name === undefined)
    return wrong(`${TOOL_SCHEMA} expects the name of a tool. Send {"name": "<name>"}.`);
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined) return wrong(`Unknown tool ${shown(name)}; see ${DISCOVER_TOOLS}.`);
  const { description, parameters, effect, ends } = tool;
  return right({ name, description, parameters, effect, ...(ends && { ends }) });
}

/** Returns the tool that a call of `tool_schema` names; undefined if it names none. */
export function requestedTool(args: Arguments): string | undefined {
  const name = args['name'] ?? args['tool'];
  return typeof name === 'string' ? name : undefined;
}

function right(value: object): Answer {
  return { ok: true, value };
}

function wrong(message: string): Answer {
  return { ok: false, message };
}

function isListed(tool: ToolDefinition): tool is Listed {
  return tool.catalog !== undefined;
}

/**
 * Returns a filter in lower case; null if it is empty, undefined if it is not a list of strings.
 */
function readFilter(value: unknown): readonly string[] | null | undefined {
  const list: unknown = typeof value === 'string' ? [value] : (value ?? []);
  if (!Array.isArray(list) || !list.every((item) => typeof item === 'string')) return undefined;
  return list.length === 0 ? null : list.map((item: string) => item.toLowerCase());
}

function matches(wanted: readonly string[] | null, has: readonly string[]): boolean {
  return wanted === null || has.some((value) => wanted.includes(value.toLowerCase()));
}

function filterValues(
  tools: readonly Listed[],
  of: (entry: CatalogEntry) => readonly string[],
): readonly string[] {
  return [...new Set(tools.flatMap(({ catalog }) => of(catalog)))].toSorted();
}

function unknown(
  what: string,
  wanted: readonly string[] | null,
  known: readonly string[],
): readonly string[] {
  const there = new Set(known.map((value) => value.toLowerCase()));
  const missing = [...new Set(wanted)].filter((value) => !there.has(value));
  if (missing.length === 0) return [];
  const given = missing.slice(0, MAX_UNKNOWN).map(shown).join(', ');
  return [`Unknown ${what} ${given}; available: ${named(known)}.`];
}

function named(values: readonly string[]): string {
  const more = values.length > MAX_KNOWN ? `, and ${values.length - MAX_KNOWN} more` : '';
  return values.slice(0, MAX_KNOWN).join(', ') + more;
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, VALUE_CHARACTERS));
}
