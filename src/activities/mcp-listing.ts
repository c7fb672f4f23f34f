import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { listedDefinition } from '../agents/agent-definition.js';
import { refuseLarge, type LoadedAgent } from '../agents/catalog.js';
import type { AgentDefinition, McpLeft, ToolDefinition } from '../core/definition/definition.js';
import type { McpServer } from '../mcp/mcp-server.js';
import { WorkerFaultError } from '../mcp/handed.js';
import { serverTools } from '../mcp/server-tools.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import type { ActivityDependencies } from './dependencies.js';
import { withHeartbeat } from './heartbeat.js';

/**
 * The definition of a run with the tools that the agent's MCP servers list now. Where a server that the
 * agent cannot do without is not to be had, Temporal tries again; what no attempt can mend is refused.
 */
export async function withMcpTools(
  deps: Pick<ActivityDependencies, 'mcp'>,
  { agent, definition: own }: LoadedAgent,
  run: { definition: AgentDefinition; refuse: (message: string) => ApplicationFailure },
): Promise<AgentDefinition> {
  const { definition, refuse } = run;
  try {
    const found = await withHeartbeat(
      Context.current(),
      () => undefined,
      () => Promise.all(agent.mcp.map((server) => toolsOf(deps, server))),
    );
    const listed = listedDefinition(definition, {
      unlisted: own.hash,
      tools: found.flatMap(({ tools }) => tools),
      left: found.flatMap(({ left }) => left),
    });
    refuseLarge(listed);
    return listed;
  } catch (error) {
    if (error instanceof UnreachableError) {
      throw ApplicationFailure.create({ type: 'McpUnreachable', message: error.message });
    }
    throw refuse(normalizeError(error).message);
  }
}

/** Worth another attempt. */
class UnreachableError extends Error {}

/** The server has answered: another attempt would end like this one. */
class UnusableError extends Error {}

interface Found {
  readonly tools: readonly ToolDefinition[];
  readonly left: readonly McpLeft[];
}

async function toolsOf(
  { mcp }: Pick<ActivityDependencies, 'mcp'>,
  server: McpServer,
): Promise<Found> {
  const { name, startup } = server;
  try {
    return await ask(mcp, server);
  } catch (error) {
    const { message } = normalizeError(error);
    if (startup === 'best_effort') return { tools: [], left: [{ server: name, message }] };
    if (error instanceof UnusableError || error instanceof WorkerFaultError) throw error;
    throw new UnreachableError(message, { cause: error });
  }
}

async function ask(mcp: ActivityDependencies['mcp'], server: McpServer): Promise<Found> {
  const { tools, problems } = serverTools(server, await mcp.of(server).listing({ maxAgeMs: 0 }));
  if (problems.length === 0) return { tools, left: [] };
  const message = `MCP server "${server.name}": ${problems.slice(0, 5).join('; ')}`;
  if (server.startup === 'strict') throw new UnusableError(message);
  return { tools, left: [{ server: server.name, message }] };
}
