import type { AgentDefinition, ToolDefinition } from '../definition/definition.js';
import type { PromptMessage, ToolCall } from '../transcript/messages.js';

/** A tool as a model is told of it. */
export type ShownTool = Pick<ToolDefinition, 'name' | 'description' | 'parameters'>;

export const DISCOVER = 'discover_tools';
export const SCHEMA = 'tool_schema';
export const INVOKE = 'invoke_tool';

const texts = { type: 'array', items: { type: 'string' } };

/** What a model sees in place of all tools where these stand in a catalog. Sorted by name. */
const CATALOG_TOOLS: readonly ShownTool[] = [
  {
    name: DISCOVER,
    description:
      'Lists the tools there are, with a summary of each. All filters are optional; a tool must ' +
      'match each one that is given, and of a list one value.',
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
      'Calls a tool. Read its tool_schema first, unless you know it. read_result, which a cut ' +
      'text names, is called like this too.',
    parameters: {
      type: 'object',
      properties: {
        tool: { type: 'string', description: 'its name' },
        arguments: { type: 'object', description: "under the tool's schema" },
      },
      required: ['tool', 'arguments'],
      additionalProperties: false,
    },
  },
  {
    name: SCHEMA,
    description: 'Tells what one tool does and which arguments it takes, as a JSON schema.',
    parameters: {
      type: 'object',
      properties: { name: { type: 'string' } },
      required: ['name'],
      additionalProperties: false,
    },
  },
];

/** Names that no tool of an agent with a catalog can have. */
export const CATALOG_NAMES: readonly string[] = CATALOG_TOOLS.map(({ name }) => name);

type Exposed = Pick<AgentDefinition, 'tools' | 'toolExposure'>;

export function hasCatalog({ tools, toolExposure }: Exposed): boolean {
  return toolExposure === 'catalog' && tools.length > 0;
}

/** The tools that a model is shown, each with what it needs to know. */
export function shownTools(definition: Exposed): readonly ShownTool[] {
  if (hasCatalog(definition)) return CATALOG_TOOLS;
  return definition.tools.map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }));
}

/** All that a call can name: with a catalog the tools in it too, which models have read of. */
export function callableTools(definition: Exposed): readonly ShownTool[] {
  return hasCatalog(definition) ? [...CATALOG_TOOLS, ...definition.tools] : definition.tools;
}

/** Whether the workflow itself answers this call, from the definition that the run has pinned. */
export function asksCatalog(definition: Exposed, { name }: Pick<ToolCall, 'name'>): boolean {
  return hasCatalog(definition) && CATALOG_NAMES.includes(name);
}

/**
 * The messages as a model with a catalog is to read them: a call that came by `invoke_tool` is
 * recorded as the real one, and shown as it was asked. A function of each message alone, so the
 * prompt's beginning stays the same from step to step.
 */
export function withInvocations(
  definition: Exposed,
  messages: readonly PromptMessage[],
): readonly PromptMessage[] {
  if (!hasCatalog(definition)) return messages;
  return messages.map((message) =>
    message.role === 'assistant' && message.calls
      ? { ...message, calls: message.calls.map(asInvocation) }
      : message,
  );
}

/** Canonical, as all arguments are: the keys stand in their order. */
function asInvocation({ via, ...call }: ToolCall): ToolCall {
  if (via === undefined) return call;
  const tool = JSON.stringify(call.name);
  return { ...call, name: INVOKE, arguments: `{"arguments":${call.arguments},"tool":${tool}}` };
}
