import type { ToolBlock } from '../../core/blocked.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import { callTool } from '../../mcp/call-tool.js';
import { effectOf, usableTool } from '../../mcp/listed-tool.js';
import { WorkerFaultError } from '../../mcp/handed.js';
import { isGiven } from '../../mcp/server-tools.js';
import { toolChange } from '../../mcp/tool-change.js';
import { CallFault } from '../../tools/arguments/call-fault.js';
import type { Tool } from '../../tools/tool.js';
import { effectChanged } from './effect-changed.js';
import type { PinnedAgent } from '../definitions.js';
import type { ActivityDependencies } from '../dependencies.js';

/** Why a call has to wait for somebody. */
export interface ToolBlocked {
  readonly reason: ToolBlock;
  /** For people. */
  readonly message: string;
  /** The form that the tool has now, which a person may accept. */
  readonly definition?: string;
}

export type FoundTool =
  { readonly ok: true; readonly tool: Tool } | ({ readonly ok: false } & ToolBlocked);

/** What only reads may be called by a list that is so old; before anything else the list is asked for anew. */
const READ_AGE_MS = 60_000;
/** A server that takes longer to start goes on starting; the call is tried again meanwhile. */
const WAIT_MS = 8_000;
/** Of a hash, for people to type. */
const HASH_DIGITS = 16;

interface Wanted {
  readonly pinned: ToolDefinition;
  readonly accepted: string | undefined;
  /** What to type for a decision about the call, as far as it is known here. */
  readonly resolve: string;
}

/**
 * A tool of an MCP server for one call: the one that the run has pinned, and no other. Where the server
 * has changed it, or does not have it any more, that blocks the run. Rejects where the server cannot be
 * reached; nothing has happened then.
 */
export async function mcpTool(
  { mcp, blobs }: Pick<ActivityDependencies, 'mcp' | 'blobs'>,
  agent: PinnedAgent,
  { pinned, accepted, resolve }: Wanted,
): Promise<FoundTool> {
  const origin = pinned.mcp;
  const server = agent.agent?.mcp.find(({ name }) => name === origin?.server);
  if (origin === undefined || server === undefined) {
    return missing(
      `agent "${agent.definition.name}" has no MCP server "${origin?.server ?? ''}" on this worker; deploy it again, or cancel the run`,
    );
  }
  const session = mcp.of(server);
  const maxAgeMs = pinned.effect === 'read' ? READ_AGE_MS : 0;
  const listed = await session.listing({ maxAgeMs, waitMs: WAIT_MS }).catch(asBlock);
  if ('reason' in listed) return listed;
  const now = listed.find(({ name }) => name === origin.tool);
  if (now === undefined || !isGiven(server, now.name)) {
    const why = now === undefined ? 'has no' : 'is not to give this agent its';
    return missing(
      `MCP server "${server.name}" ${why} tool "${origin.tool}" any more; bring it back, or cancel the run`,
    );
  }
  const definition = now.hash.slice(0, HASH_DIGITS);
  const isPinned = now.hash === origin.hash;
  if (isPinned || definition === accepted) {
    const effect = effectOf(server, now);
    // Of a form that a person accepted, only what is pinned as the strictest may have another effect.
    if (effect !== pinned.effect && (isPinned || pinned.effect !== 'once')) {
      return { ok: false, reason: 'tool_changed', message: effectChanged(pinned, effect) };
    }
    return { ok: true, tool: callTool(pinned, session, blobs) };
  }
  const usable = usableTool(server, now);
  const begin = `MCP server "${server.name}" has changed tool "${origin.tool}" since the run began`;
  if (!usable.ok) {
    return { ok: false, reason: 'tool_changed', message: `${begin}, and now ${usable.problem}` };
  }
  return {
    ok: false,
    reason: 'tool_changed',
    ...offer(pinned, usable.definition, { begin, definition, resolve }),
  };
}

/** What a person has to mend blocks the run; anything else is tried again. */
function asBlock(error: unknown): FoundTool & { readonly ok: false } {
  if (error instanceof CallFault && error.kind === 'refused') {
    return { ok: false, reason: 'credentials', message: error.message };
  }
  if (error instanceof WorkerFaultError) {
    return { ok: false, reason: 'tool_missing', message: error.message };
  }
  throw error;
}

/** What is dangerous now is not called under the promises of before: only a new definition holds for it. */
function offer(
  pinned: ToolDefinition,
  now: ToolDefinition,
  { begin, definition, resolve }: { begin: string; definition: string; resolve: string },
): Pick<ToolBlocked, 'message' | 'definition'> {
  const change = `${begin}:\n${toolChange(pinned, now)}\n`;
  if (pinned.effect !== 'once' && now.effect !== pinned.effect) {
    const message = `${change}Its effect is another one, so it can only be taken with a new definition: start a new run, or cancel this one`;
    return { message };
  }
  const message = `${change}If that is as it should be, let the call go on with: ${resolve} --as accept --definition ${definition}`;
  return { message, definition };
}

function missing(message: string): FoundTool {
  return { ok: false, reason: 'tool_missing', message };
}
