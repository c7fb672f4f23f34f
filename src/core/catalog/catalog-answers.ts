import { DISCOVER, INVOKE, SCHEMA } from './catalog.js';
import { refusal, type CallResult } from '../calls/call-result.js';
import type { AgentDefinition, CatalogEntry, ToolDefinition } from '../definition/definition.js';
import { isObject, parseJson } from '../json.js';
import type { ToolCall } from '../transcript/messages.js';

/** Tools in one answer; those beyond are counted. */
const MOST_ROWS = 50;
/** Values that a hint names, of those that there are and of those that there are not. */
const MOST_KNOWN = 40;
const MOST_UNKNOWN = 5;
const VALUE_CHARACTERS = 64;
const QUERY_CHARACTERS = 200;
const FILTERS = ['categories', 'actions', 'query'];

type Tools = Pick<AgentDefinition, 'tools'>;
/** What the engine adds to an agent (`read_result`) has no entry and is not listed. */
type Listed = ToolDefinition & { readonly catalog: CatalogEntry };
type Arguments = Readonly<Record<string, unknown>>;
type Answer =
  { readonly ok: true; readonly value: object } | { readonly ok: false; readonly message: string };

/** The answer to a call of the catalog itself: a pure function of what the run has pinned. */
export function catalogAnswer(definition: Tools, call: ToolCall): CallResult {
  // Arguments that lie in the blob store are longer than any that could be meant.
  const given = call.blob === undefined ? parseJson(call.arguments) : undefined;
  const answer = isObject(given)
    ? answerQuestion(definition, call.name, given)
    : wrong(`The arguments of ${call.name} are too long.`);
  if (answer.ok) {
    return { id: call.id, ok: true, text: JSON.stringify(answer.value), executed: false };
  }
  return refusal(call.id, { type: 'invalid_arguments', message: answer.message });
}

/** `name` is one of the catalog's tools. */
export function answerQuestion(definition: Tools, name: string, asked: Arguments): Answer {
  if (name === DISCOVER) return discover(definition, asked);
  if (name === SCHEMA) return schemaOf(definition, asked);
  return wrong(`${name} takes {"tool": "<name>", "arguments": {…}}.`);
}

/**
 * The tools that match every filter that is given, sorted by name; of a list, one value is enough. A
 * value that no tool has contributes nothing, and the hint says what there is. `query` is made of
 * words, each of which stands in the name or the summary, in letters of any case.
 */
function discover(definition: Tools, asked: Arguments): Answer {
  const stray = Object.keys(asked).find((key) => !FILTERS.includes(key));
  if (stray !== undefined) {
    return wrong(`There is no filter ${shown(stray)}; there are ${FILTERS.join(', ')}.`);
  }
  const categories = listOf(asked['categories']);
  const actions = listOf(asked['actions']);
  const query = asked['query'] ?? '';
  if (categories === undefined || actions === undefined || typeof query !== 'string') {
    return wrong('categories and actions are lists of texts, query is a text.');
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
      valuesOf(all, ({ category }) => [category]),
    ),
    ...unknown(
      'action',
      actions,
      valuesOf(all, (entry) => entry.actions),
    ),
    ...next(found, all),
  ].join(' ');
  return right({ tools: found.slice(0, MOST_ROWS).map(row), count: found.length, hint });
}

function row({ name, effect, ends, catalog: { summary, category } }: Listed): object {
  return { name, summary, category, effect, ...(ends && { ends }) };
}

/** What to do with an answer. */
function next(found: readonly Listed[], all: readonly Listed[]): readonly string[] {
  if (found.length === 0) return [`No tool matches; without filters all ${all.length} are listed.`];
  const how = `Read the ${SCHEMA} of the one you need, then ${INVOKE}.`;
  if (found.length <= MOST_ROWS) return [how];
  const categories = named(valuesOf(found, ({ category }) => [category]));
  return [
    `These are the first ${MOST_ROWS} of ${found.length}; narrow it down, by query or by category: ${categories}.`,
    how,
  ];
}

/** What one tool does and takes. A name that no tool has is refused on the worker, with the nearest ones. */
function schemaOf({ tools }: Tools, asked: Arguments): Answer {
  const name = nameAsked(asked);
  if (name === undefined) return wrong(`${SCHEMA} names no tool. Send {"name": "<name>"}.`);
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined) return wrong(`There is no tool ${shown(name)}; see ${DISCOVER}.`);
  const { description, parameters, effect, ends } = tool;
  return right({ name, description, parameters, effect, ...(ends && { ends }) });
}

/** The tool that `tool_schema` is asked for; undefined where none is named. */
export function nameAsked(asked: Arguments): string | undefined {
  const name = asked['name'] ?? asked['tool'];
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

/** A filter in lower case, null where there is none; undefined where it is no list of texts. */
function listOf(value: unknown): readonly string[] | null | undefined {
  const list: unknown = typeof value === 'string' ? [value] : (value ?? []);
  if (!Array.isArray(list) || !list.every((item) => typeof item === 'string')) return undefined;
  return list.length === 0 ? null : list.map((item: string) => item.toLowerCase());
}

function matches(wanted: readonly string[] | null, has: readonly string[]): boolean {
  return wanted === null || has.some((value) => wanted.includes(value.toLowerCase()));
}

function valuesOf(
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
  const given = missing.slice(0, MOST_UNKNOWN).map(shown).join(', ');
  return [`There is no ${what} ${given}; there are: ${named(known)}.`];
}

function named(values: readonly string[]): string {
  const more = values.length > MOST_KNOWN ? `, and ${values.length - MOST_KNOWN} more` : '';
  return values.slice(0, MOST_KNOWN).join(', ') + more;
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, VALUE_CHARACTERS));
}
