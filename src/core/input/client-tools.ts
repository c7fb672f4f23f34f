import type { ClientTool } from '../definition/tool-definition.js';
import { isObject, isTooDeep, tooDeep } from '../text/json.js';
import { jsonText, show } from '../text/text.js';
import { CATALOG_NAMES } from '../transcript/catalog.js';

/** Maximum number of tools of a caller, as at OpenAI. */
const MAX_TOOLS = 128;
/** Maximum characters of all definitions as JSON. They are pinned and sent with each model call. */
const MAX_CHARACTERS = 64 * 1024;
const FIELDS: readonly string[] = ['name', 'description', 'parameters'];
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** Returns what is wrong with the tools of a caller, or null. `field`: what the caller calls them. */
export function clientToolsProblem(value: unknown, field = 'clientTools'): string | null {
  if (value === undefined) return null;
  if (!Array.isArray(value)) {
    return `${field}: expected a list of tools, got ${show(value)}; give for example [{"name": "open_page"}]`;
  }
  if (value.length > MAX_TOOLS) {
    return `${field}: expected at most ${MAX_TOOLS} tools, got ${value.length}; give fewer`;
  }
  if (isTooDeep(value)) return tooDeep(field);
  const names = new Set<unknown>();
  for (const [at, tool] of value.entries()) {
    const problem = toolProblem(tool, `${field}.${at}`);
    if (problem !== null) return problem;
    const { name } = isObject(tool) ? tool : {};
    if (names.has(name)) {
      return `${field}.${at}.name: expected a name of its own, got ${show(name)} twice; rename one`;
    }
    names.add(name);
  }
  const characters = jsonText(value)?.length ?? Infinity;
  if (characters <= MAX_CHARACTERS) return null;
  return `${field}: expected at most ${MAX_CHARACTERS} characters of JSON, got ${characters}; give fewer tools, or shorter descriptions`;
}

function toolProblem(tool: unknown, at: string): string | null {
  if (!isObject(tool)) return `${at}: expected a tool with a name, got ${show(tool)}`;
  const unknown = Object.keys(tool).find((key) => !FIELDS.includes(key));
  if (unknown !== undefined) {
    return `${at}.${unknown}: expected one of ${FIELDS.join(', ')}; correct its name, or remove it`;
  }
  const { name, description, parameters } = tool;
  if (typeof name !== 'string' || !NAME.test(name)) {
    return `${at}.name: expected 1 to 64 letters, digits, "_" and "-", got ${show(name)}; rename the tool`;
  }
  if (description !== undefined && typeof description !== 'string') {
    return `${at}.description: expected a text, got ${show(description)}`;
  }
  if (parameters === undefined) return null;
  if (isObject(parameters) && parameters['type'] === 'object') return null;
  return `${at}.parameters: expected a JSON schema of type "object", got ${show(parameters)}; omit it for a tool without arguments`;
}

/** Names that the engine uses itself. */
const RESERVED: readonly string[] = ['read_result', ...CATALOG_NAMES];

/** The parts of an agent that decide which tools a caller may add. */
export interface ExtendedAgent {
  readonly name: string;
  readonly tools: readonly { readonly name: string; readonly kind?: string }[];
  /** Present if it is a graph. */
  readonly graph?: unknown;
}

/**
 * Returns why a caller may not add these tools to an agent, or null: nothing that a caller defines
 * replaces a tool of the agent. One without `execute` is used as the agent has it.
 */
export function addedToolsProblem(
  { name: agent, tools, graph }: ExtendedAgent,
  given: readonly ClientTool[] = [],
  field = 'clientTools',
): string | null {
  const problem = clientToolsProblem(given, field);
  if (problem !== null || given.length === 0) return problem;
  if (graph !== undefined) {
    return `${field}: expected none for ${show(agent)}, a graph, whose nodes name their tools; remove them`;
  }
  const taken = given.findIndex(({ name }) => {
    const own = tools.find((tool) => tool.name === name);
    return own === undefined ? RESERVED.includes(name) : own.kind !== 'client';
  });
  if (taken === -1) return null;
  return `${field}.${taken}.name: expected a name that agent ${show(agent)} does not use, got ${show(given[taken]?.name)}, a tool of its own; rename the tool`;
}
