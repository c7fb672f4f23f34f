import type { LoadedAgent } from '../agents/agent-definition.js';
import type { McpOmission } from '../core/definition/definition.js';
import { canonicalJson } from '../core/text/json.js';
import type { McpListing } from '../mcp/listed-tool.js';
import { knownNames, lockName } from '../mcp/lock-tools.js';
import type { McpServer } from '../mcp/mcp-server.js';
import { type KnownTools, type RuleFindings, ruleFindings } from '../validation/rule-names.js';
import type { ActivityDependencies } from './activity-context.js';

/** An MCP server with what it lists. */
export interface ServerListing {
  readonly server: McpServer;
  readonly listing: McpListing;
}

/** What is known when the MCP servers of an agent have listed their tools. */
interface Listed {
  readonly loaded: LoadedAgent;
  /** The tools of the run: the agent's own, and those of its servers. */
  readonly tools: KnownTools['tools'];
  readonly listings: readonly ServerListing[];
  /** The servers that the run works without. */
  readonly left?: readonly McpOmission[] | undefined;
}

/** What rules name that the tools of MCP servers do not have. */
interface McpRules {
  /** Why a rule can apply to no call, although its server has listed its tools; null if none is. */
  readonly silent: string | null;
  /** Rules about tools of servers that the run works without, and globs that match no call now. */
  readonly notes: readonly string[];
}

/**
 * Compares the rules of an agent and of its worker with the tools that its MCP servers list now: the
 * names of these tools are not known earlier. A tool that the agent does not get, or that its server
 * had before, counts as known: a rule about it is harmless.
 */
export async function mcpRules(
  { agents, requests, toolLock }: Pick<ActivityDependencies, 'agents' | 'requests' | 'toolLock'>,
  { loaded, tools, listings, left = [] }: Listed,
): Promise<McpRules> {
  const { name, mcp, rules } = loaded.agent;
  const gone = left.map(({ server }) => server);
  const all = agents.names.flatMap((each) => agents.named(each) ?? []);
  const others = all.flatMap(({ agent }) => agent.mcp).filter((other) => !mcp.some(isSame(other)));
  // Another agent may give other effects to the tools of the same server.
  const mixed = all
    .flatMap(({ agent }) => agent.mcp)
    .filter((other) => mcp.some((one) => isSame(other)(one) && !hasEffectsOf(other, one)))
    .map((server) => server.name);
  const withEffects = (tool: KnownTools['tools'][number]): KnownTools['tools'] =>
    mixed.some((server) => tool.name.startsWith(`${server}__`))
      ? (['read', 'keyed', 'once'] as const).map((effect) => ({ ...tool, effect }))
      : [tool];
  // Their tools are listed when a run of their agent starts.
  const unlisted = others.map((server) => server.name);
  const shared: KnownTools = {
    tools: [
      ...all.flatMap((each) => each.tools.tools),
      ...tools
        .filter((tool) => !unlisted.some((server) => tool.name.startsWith(`${server}__`)))
        .flatMap(withEffects),
    ],
    unlisted: [...gone, ...unlisted],
    servers: all.flatMap(({ agent }) => agent.mcp).map((server) => server.name),
  };
  const own: KnownTools = { tools, unlisted: gone, servers: mcp.map((server) => server.name) };
  const find = (withheld: readonly string[]): readonly (readonly [string, RuleFindings])[] => [
    [`agent "${name}"`, ruleFindings(rules, { ...own, withheld })],
    ['config', ruleFindings(requests.rules, { ...shared, withheld })],
  ];
  let found = find([]);
  if (found.some(([, { errors }]) => errors.length > 0)) {
    const names = listings.map(({ server, listing }) => knownNames(toolLock, server, listing));
    found = find((await Promise.all(names)).flat());
  }
  const [silent = null] = found.flatMap(([owner, { errors }]) => owned(owner, errors));
  const notes = found
    .slice(0, 1)
    .flatMap(([owner, { unchecked, warnings }]) => owned(owner, [...warnings, ...unchecked]));
  return { silent, notes };
}

/** Returns whether another server is the same program or address, whatever its other options. */
function isSame(server: McpServer): (other: McpServer) => boolean {
  return (other) => lockName(other) === lockName(server);
}

function hasEffectsOf(one: McpServer, other: McpServer): boolean {
  return canonicalJson({ ...one.effects }) === canonicalJson({ ...other.effects });
}

function owned(owner: string, texts: readonly string[]): readonly string[] {
  return texts.map((text) => `${owner}: ${text}`);
}
