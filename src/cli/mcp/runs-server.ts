import { McpServer } from '@modelcontextprotocol/server';
import { ownVersion } from '../../storage/own-version.js';
import type { RunsAccess } from './access.js';
import { failedResult } from './answers.js';
import { addControlTools } from './control-tools.js';
import { addDecideTools } from './decide-tools.js';
import { addReadTools } from './read-tools.js';
import { addStartTools } from './start-tools.js';

/** Creates an MCP server whose tools start runs of agents, send them messages, and read them. */
export function runsServer(access: RunsAccess): McpServer {
  const server = new McpServer({ name: 'perdure', version: ownVersion() });
  // The SDK itself refuses arguments that do not fit a tool's schema; its result has no code.
  Object.defineProperty(server, 'createToolError', {
    value: (message: string) => failedResult(message, 'input'),
  });
  addStartTools(server, access);
  addReadTools(server, access);
  addControlTools(server, access);
  if (access.canDecide) addDecideTools(server, access);
  return server;
}
