import type { Config } from '../../config.js';
import type { McpServer } from '../../mcp/mcp-server.js';
import { createSessions, type McpSessions } from '../../mcp/sessions.js';
import { serverTools } from '../../mcp/server-tools.js';
import { formatCount } from '../format/format.js';
import type { Finding } from './finding.js';

/** Of a server that has to be started; one that is slower may be fine all the same. */
const WITHIN_MS = 8_000;

/** The MCP servers of each agent, as a worker of this environment would reach them; each is asked for its tools. */
export async function mcpFindings(
  { agents }: Config,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly Finding[]> {
  const sessions = createSessions(env);
  try {
    return await Promise.all(
      agents.flatMap((agent) =>
        agent.mcp.map((server) => finding(sessions, { agent: agent.name, server })),
      ),
    );
  } finally {
    await sessions.close();
  }
}

async function finding(
  sessions: McpSessions,
  { agent, server }: { agent: string; server: McpServer },
): Promise<Finding> {
  const { name: serverName, startup, transport } = server;
  const name = `mcp ${serverName}`;
  const level = startup === 'strict' ? 'problem' : 'note';
  const data = { agent, server: serverName, transport };
  try {
    const listed = await sessions.of(server).listing({ maxAgeMs: WITHIN_MS, waitMs: WITHIN_MS });
    const { tools, problems } = serverTools(server, listed);
    const text = `answers; agent ${agent} gets ${formatCount(tools.length, 'tool')} of its ${listed.length}`;
    const found = { ...data, tools: tools.map((tool) => tool.name) };
    const [problem] = problems;
    if (problem === undefined) return { name, level: 'ok', text, data: found };
    return { name, level, text: `${text}; ${problem}`, data: found };
  } catch (error) {
    return { name, level, text: error instanceof Error ? error.message : String(error), data };
  }
}
