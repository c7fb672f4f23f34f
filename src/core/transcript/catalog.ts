import type { AgentDefinition } from '../definition/definition.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import type { PromptMessage, ToolCall } from './messages.js';

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
