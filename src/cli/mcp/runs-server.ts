import { McpServer } from '@modelcontextprotocol/server';
import { ownVersion } from '../../storage/own-version.js';
import type { RunsAccess } from './access.js';
import { addControlTools } from './control-tools.js';
import { addDecideTools } from './decide-tools.js';
import { addReadTools } from './read-tools.js';
import { addStartTools } from './start-tools.js';

/** Creates an MCP server whose tools start runs of agents, send them messages, and read them. */
export function runsServer(access: RunsAccess): McpServer {
  const server = new McpServer({ name: 'perdure', version: ownVersion() });
  addStartTools(server, access);
  addReadTools(server, access);
  addControlTools(server, access);
  if (access.canDecide) addDecideTools(server, access);
  return server;
}
