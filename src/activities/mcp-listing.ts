import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { listedDefinition } from '../agents/agent-definition.js';
import { refuseLarge, type LoadedAgent } from '../agents/catalog.js';
import type { AgentDefinition, McpOmission } from '../core/definition/definition.js';
import type { ToolDefinition } from '../core/definition/tool-definition.js';
import type { McpServer } from '../mcp/mcp-server.js';
import { WorkerFaultError } from '../mcp/server-environment.js';
import { lockedTools } from '../mcp/lock-tools.js';
import { describeOdd, serverTools } from '../mcp/server-tools.js';
import { redactMessage } from '../secrets/redact.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import type { ActivityDependencies } from './dependencies.js';
import { withHeartbeat } from './heartbeat.js';
import { findStorageFault } from './storage-faults.js';

/**
 * Returns the definition of a run with the tools that the agent's MCP servers list now. Throws
 * `McpUnreachable`, which Temporal retries, if a server that the agent needs cannot be reached, and
 * the failure from `refuse` for a problem that no retry can fix, and the fault of a lock that cannot be
 * read or written.
 */
export async function listMcpTools(
  deps: Pick<ActivityDependencies, 'mcp' | 'toolLock'>,
  { agent, definition: own }: LoadedAgent,
  run: { definition: AgentDefinition; refuse: (message: string) => ApplicationFailure },
): Promise<AgentDefinition> {
  const { definition, refuse } = run;
  try {
    const found = await withHeartbeat(Context.current(), () =>
      Promise.all(agent.mcp.map((server) => listOrLeave(deps, server))),
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
    if (findStorageFault(error) !== null) throw error;
    throw refuse(normalizeError(error).message);
  }
}

/** A server could not be reached; another attempt may succeed. */
class UnreachableError extends Error {}

/** A server's answer is unusable, and another attempt would get the same answer. */
class UnusableError extends Error {}

interface ServerTools {
  readonly tools: readonly ToolDefinition[];
  /** The servers that the run works without. */
  readonly left: readonly McpOmission[];
}

/** Returns the tools of a server. A server with startup `best_effort` is left out if it fails. */
async function listOrLeave(
  deps: Pick<ActivityDependencies, 'mcp' | 'toolLock'>,
  server: McpServer,
): Promise<ServerTools> {
  const { name, startup } = server;
  try {
    return await listTools(deps, server);
  } catch (error) {
    // Without the lock, no tool can be trusted.
    if (findStorageFault(error) !== null) throw error;
    const { message } = normalizeError(error);
    if (startup === 'best_effort') return { tools: [], left: [{ server: name, message }] };
    if (error instanceof UnusableError || error instanceof WorkerFaultError) throw error;
    throw new UnreachableError(message, { cause: error });
  }
}

async function listTools(
  { mcp, toolLock }: Pick<ActivityDependencies, 'mcp' | 'toolLock'>,
  server: McpServer,
): Promise<ServerTools> {
  const listing = await mcp.of(server).listing({ maxAgeMs: 0 });
  const { used, odd, problems } = serverTools(server, listing);
  warnOf(server, odd.length === 0 ? '' : describeOdd(odd));
  const message = `MCP server "${server.name}": ${problems.slice(0, 5).join('; ')}`;
  if (problems.length > 0 && server.startup === 'strict') throw new UnusableError(message);
  const { tools, notes } = await lockedTools(toolLock, server, used);
  warnOf(server, notes.length === 0 ? '' : describeOdd(notes, 'not accepted'));
  return { tools, left: problems.length === 0 ? [] : [{ server: server.name, message }] };
}

function warnOf({ name }: McpServer, text: string): void {
  if (text !== '') Context.current().log.warn(redactMessage(`MCP server "${name}": ${text}`));
}
