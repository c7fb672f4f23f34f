import { type McpServer, mcpServer, type StdioServerOptions } from '../../src/mcp/mcp-server.js';

/** A server of the protocol in plain JavaScript, with one tool that echoes. */
const SERVER = `
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const answer = (rest) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...rest }) + '\\n');
  const serverInfo = { name: 'odd', version: '1.0.0' };
  if (method === 'initialize')
    answer({ result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo } });
  else if (method === 'tools/list')
    answer({ result: { tools: [{ name: 'look', description: 'd', inputSchema: { type: 'object' } }] } });
  else if (method === 'tools/call') {
    process.stdout.write('working... ');
    answer({ result: { content: [{ type: 'text', text: 'seen' }] } });
  } else if (id !== undefined) answer({ error: { code: -32601, message: 'no such method' } });
});`;

/** A program of this code as a server. */
export function programServer(code: string, rest: Partial<StdioServerOptions> = {}): McpServer {
  const command = process.execPath;
  return mcpServer({ name: 'odd', transport: 'stdio', command, args: ['-e', code], ...rest });
}

/** A server that executes this code, such as a banner, before it speaks the protocol. */
export const bannerServer = (code: string, rest?: Partial<StdioServerOptions>): McpServer =>
  programServer(`${code};${SERVER}`, rest);
