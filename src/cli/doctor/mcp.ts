import type { Config } from '../../config.js';
import type { McpServer } from '../../mcp/mcp-server.js';
import { createSessions, type McpSessions } from '../../mcp/sessions.js';
import { describeOdd, serverTools } from '../../mcp/server-tools.js';
import { formatCount } from '../format/format.js';
import type { Finding } from './finding.js';

/** Time for a server to start and answer. A slower server may still work for a run. */
const WITHIN_MS = 8_000;

/**
 * Checks the MCP servers of each agent by listing their tools, as a worker with this environment
 * would.
 */
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
    const { tools, odd, problems } = serverTools(server, listed);
    const count = listed.tools.length + listed.odd.length;
    const uses = `answers; agent ${agent} uses ${tools.length} of its ${formatCount(count, 'tool')}`;
    const text = odd.length === 0 ? uses : `${uses}; ${describeOdd(odd)}`;
    const found = {
      ...data,
      tools: tools.map((tool) => tool.name),
      ...(odd.length > 0 && { leftOut: odd.map((tool) => tool.name) }),
    };
    const [problem] = problems;
    if (problem !== undefined) return { name, level, text: `${text}; ${problem}`, data: found };
    return { name, level: odd.length === 0 ? 'ok' : 'note', text, data: found };
  } catch (error) {
    return { name, level, text: error instanceof Error ? error.message : String(error), data };
  }
}
