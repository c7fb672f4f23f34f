import type { ToolDefinition } from '../core/definition/definition.js';
import { usableTool, type ListedTool } from './listed-tool.js';
import type { McpServer } from './mcp-server.js';

/** The tools of a server that an agent gets, and what is wrong with others that it should get. */
export interface ServerTools {
  readonly tools: readonly ToolDefinition[];
  readonly problems: readonly string[];
}

/** Whether an agent gets this tool of a server. */
export function isGiven({ allowTools, denyTools }: McpServer, name: string): boolean {
  return (allowTools === null || allowTools.includes(name)) && !denyTools.includes(name);
}

/** Picks and checks what a server has listed. */
export function serverTools(server: McpServer, listed: readonly ListedTool[]): ServerTools {
  const problems = unknownNames(server, listed);
  const tools: ToolDefinition[] = [];
  for (const tool of listed.filter(({ name }) => isGiven(server, name))) {
    const usable = usableTool(server, tool);
    const shownName = JSON.stringify(tool.name.slice(0, 100));
    if (!usable.ok) {
      problems.push(
        `tool ${shownName} cannot be used: ${usable.problem}; leave it out by denyTools`,
      );
    } else if (tools.some(({ name }) => name === usable.definition.name)) {
      problems.push(`it lists tool ${shownName} twice`);
    } else {
      tools.push(usable.definition);
    }
  }
  return { tools, problems };
}

/** A name that is misspelt in a list would let through, or keep away, what it was written for. */
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
        const there = [...known].toSorted().slice(0, 40).join(', ') || 'none';
        return `${list} names tool "${name}", which it does not have; it has ${there}`;
      }),
  );
}
