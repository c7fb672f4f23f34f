import type { McpServer } from '../mcp/mcp-server.js';

/** The MCP servers of an agent. Throws with the value at fault and the cure. */
export function mcpServersOf(agent: string, given: readonly McpServer[]): readonly McpServer[] {
  if (!Array.isArray(given))
    throw new Error(`agent "${agent}": mcp must be a list of mcpServer({…})`);
  const wrong = given.findIndex((server: Partial<McpServer> | null) => !server?.denyTools);
  if (wrong !== -1) {
    throw new Error(`agent "${agent}": mcp[${wrong}] is no server; make it with mcpServer({…})`);
  }
  const names = given.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return given;
  throw new Error(
    `agent "${agent}": two MCP servers are named "${twice}"; their tools would be mixed up, rename one`,
  );
}
