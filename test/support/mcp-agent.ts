import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Tool } from '@modelcontextprotocol/server';
import { type StdioServerOptions, mcpServer, type McpServer } from '../../src/mcp/mcp-server.js';
import { childScript } from './child-script.js';
import type { FixtureFiles } from './mcp-fixture.js';

const SCRIPT = new URL('../fixtures/mcp/stdio-server.ts', import.meta.url);

/** A tool that has no arguments by default. */
export function listed(name: string, rest: Partial<Tool> = {}): Tool {
  return { name, description: `does ${name}`, inputSchema: { type: 'object' }, ...rest };
}

/** The files of a fixture server, in a folder of their own. */
export async function fixtureFiles(tools: readonly Tool[]): Promise<FixtureFiles> {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-mcp-'));
  const files = { tools: join(folder, 'tools.json'), ledger: join(folder, 'ledger.jsonl') };
  await offer(files, tools);
  return files;
}

/** Sets the tools that the server lists from now on. */
export async function offer(files: FixtureFiles, tools: readonly Tool[]): Promise<void> {
  await writeFile(files.tools, JSON.stringify(tools));
}

/** The fixture as a child process of the worker. */
export function stdioFixture(
  files: FixtureFiles,
  rest: Partial<StdioServerOptions> = {},
): McpServer {
  return mcpServer({
    name: 'desk',
    transport: 'stdio',
    command: process.execPath,
    args: [...childScript(SCRIPT), files.tools, files.ledger],
    ...rest,
  });
}
