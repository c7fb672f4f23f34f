import type { ToolDefinition } from '../core/definition/tool-definition.js';
import { usableTool, type ListedTool } from './listed-tool.js';
import type { McpServer } from './mcp-server.js';

/** The tools of a server that an agent gets, and the problems with other requested tools. */
export interface ServerTools {
  readonly tools: readonly ToolDefinition[];
  readonly problems: readonly string[];
}

/** Returns whether an agent gets this tool of a server. */
export function isAllowedTool({ allowTools, denyTools }: McpServer, name: string): boolean {
  return (allowTools === null || allowTools.includes(name)) && !denyTools.includes(name);
}

/** Selects and checks the tools that a server has listed. */
export function serverTools(server: McpServer, listed: readonly ListedTool[]): ServerTools {
  const problems = unknownNames(server, listed);
  const tools: ToolDefinition[] = [];
  for (const tool of listed.filter(({ name }) => isAllowedTool(server, name))) {
    const usable = usableTool(server, tool);
    const shownName = JSON.stringify(tool.name.slice(0, 100));
    if (!usable.ok) {
      problems.push(
        `tool ${shownName} cannot be used: ${usable.problem}; exclude it with denyTools`,
      );
    } else if (tools.some(({ name }) => name === usable.definition.name)) {
      problems.push(`it lists tool ${shownName} twice`);
    } else {
      tools.push(usable.definition);
    }
  }
  return { tools, problems };
}

/**
 * Returns the problems with names in the options that the server lacks: a misspelled one would have
 * no effect.
 */
function unknownNames(
  { allowTools, denyTools, effects }: McpServer,
  listed: readonly ListedTool[],
): string[] {
  const known = new Set(listed.map(({ name }) => name));
  const lists = { allowTools: allowTools ?? [], denyTools, effects: Object.keys(effects) };
  return Object.entries(lists).flatMap(([list, names]) =>
    names
      .filter((name) => !known.has(name))
      .map((name) => {
        const existing = [...known].toSorted().slice(0, 40).join(', ') || 'none';
        return `${list} names tool "${name}", which it does not have; available: ${existing}`;
      }),
  );
}
