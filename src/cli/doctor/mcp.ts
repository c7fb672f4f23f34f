import type { Config } from '../../config.js';
import { printable } from '../../core/text/hidden.js';
import type { McpServer } from '../../mcp/mcp-server.js';
import { acceptCommand, compareTools } from '../../mcp/lock-tools.js';
import { createSessions, type McpSessions } from '../../mcp/sessions.js';
import { describeOdd, serverTools } from '../../mcp/server-tools.js';
import type { ToolLock } from '../../storage/tool-lock.js';
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
  lock: ToolLock,
): Promise<readonly Finding[]> {
  const sessions = createSessions(env);
  try {
    return await Promise.all(
      agents.flatMap((agent) =>
        agent.mcp.map((server) => finding({ sessions, lock }, { agent: agent.name, server })),
      ),
    );
  } finally {
    await sessions.close();
  }
}

async function finding(
  { sessions, lock }: { sessions: McpSessions; lock: ToolLock },
  { agent, server }: { agent: string; server: McpServer },
): Promise<Finding> {
  const { name: serverName, startup, transport } = server;
  const name = `mcp ${serverName}`;
  const level = startup === 'strict' ? 'problem' : 'note';
  const data = { agent, server: serverName, transport };
  try {
    const listed = await sessions.of(server).listing({ maxAgeMs: WITHIN_MS, waitMs: WITHIN_MS });
    const { used, odd, problems } = serverTools(server, listed);
    const { unknown, changed } = await compareTools(lock, server, used);
    const count = listed.tools.length + listed.odd.length;
    const unaccepted = server.trust === 'accepted' ? unknown.map((tool) => tool.listed.name) : [];
    const changes = changed.map((tool) => tool.listed.name);
    const texts = [
      `answers; agent ${agent} uses ${used.length} of its ${formatCount(count, 'tool')}`,
      ...(odd.length === 0 ? [] : [describeOdd(odd)]),
      ...changes.map((tool) => `tool ${shown(tool)} has changed since it was accepted`),
      ...unaccepted.map((tool) => `nobody has accepted tool ${shown(tool)}`),
      ...problems.slice(0, 1),
    ];
    const [toAccept] = [...changes, ...unaccepted];
    const isFine = odd.length === 0 && problems.length === 0 && toAccept === undefined;
    return {
      name,
      level: isFine ? 'ok' : problems.length > 0 ? level : 'note',
      text: texts.join('; '),
      ...(toAccept !== undefined && {
        fix: `review and accept: ${acceptCommand(server, toAccept)}`,
      }),
      data: {
        ...data,
        tools: used.map((tool) => tool.definition.name),
        ...(odd.length > 0 && { leftOut: odd.map((tool) => tool.name) }),
        ...(changes.length > 0 && { changed: changes }),
        ...(unaccepted.length > 0 && { notAccepted: unaccepted }),
      },
    };
  } catch (error) {
    return { name, level, text: error instanceof Error ? error.message : String(error), data };
  }
}

function shown(tool: string): string {
  return printable(JSON.stringify(tool.slice(0, 100)));
}
