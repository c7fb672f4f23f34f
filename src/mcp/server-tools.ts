import type { ToolDefinition } from '../core/definition/tool-definition.js';
import { printable } from '../core/text/hidden.js';
import { usableTool, type ListedTool, type McpListing, type OddTool } from './listed-tool.js';
import type { McpServer } from './mcp-server.js';

/** Maximum tools that a message about them names. */
const MAX_NAMED = 20;

/** A tool that an agent uses, as its server lists it and as models see it. */
export interface UsedTool {
  readonly listed: ListedTool;
  readonly definition: ToolDefinition;
}

/** The tools of a server that an agent gets. */
export interface ServerTools {
  readonly used: readonly UsedTool[];
  /** Selected tools that no model can use, with the reasons; the agent works without them. */
  readonly odd: readonly OddTool[];
  /** Faults in the agent's own options. */
  readonly problems: readonly string[];
}

/** Returns whether an agent gets this tool of a server. */
export function isAllowedTool({ allowTools, denyTools }: McpServer, name: string): boolean {
  return (allowTools === null || allowTools.includes(name)) && !denyTools.includes(name);
}

/**
 * Selects the tools that an agent gets, and then checks each of them. A tool that cannot be used is
 * left out, and so is one whose name a tool before it has.
 */
export function serverTools(server: McpServer, listing: McpListing): ServerTools {
  const used: UsedTool[] = [];
  const odd = listing.odd.filter(({ name }) => isAllowedTool(server, name));
  for (const tool of listing.tools.filter(({ name }) => isAllowedTool(server, name))) {
    const { name } = tool;
    const usable = usableTool(server, tool);
    if (!usable.ok) odd.push({ name, problem: usable.problem });
    else if (used.some((other) => other.definition.name === usable.definition.name)) {
      odd.push({ name, problem: 'another tool has its name' });
    } else used.push({ listed: tool, definition: usable.definition });
  }
  return { used, odd, problems: unknownNames(server, listing) };
}

/** Describes tools and what is wrong with each, for people. `what` says what happens to them. */
export function describeOdd(odd: readonly OddTool[], what = 'left out'): string {
  const lines = odd.slice(0, MAX_NAMED).map(({ name, problem }) => {
    return `${printable(JSON.stringify(name.slice(0, 100)))}, because ${problem}`;
  });
  const more = odd.length > lines.length ? `; and ${odd.length - lines.length} more` : '';
  return `${what}: tool ${lines.join('; tool ')}${more}`;
}

/**
 * Returns the problems with names in the options that the server lacks: a misspelled one would have
 * no effect.
 */
function unknownNames(
  { allowTools, denyTools, effects }: McpServer,
  { tools, odd }: McpListing,
): string[] {
  const known = new Set([...tools, ...odd].map(({ name }) => name));
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
