import { z } from 'zod';
import type { Effect, ToolDefinition } from '../../core/definition/tool-definition.js';
import type { AnsweredInput } from '../../core/run/contract.js';
import { canonicalJson } from '../../core/text/json.js';
import { argumentsOf, callTool } from '../../mcp/call-tool.js';
import { WorkerFaultError } from '../../mcp/connection.js';
import { effectOf, usableTool } from '../../mcp/listed-tool.js';
import {
  acceptCommand,
  acceptTools,
  describeToolChange,
  isAllowedTool,
} from '../../mcp/lock-tools.js';
import { toZodType } from '../../output/schemas.js';
import { CallFault } from '../../tools/arguments/check-arguments.js';
import { describeCall } from '../../tools/define-tool.js';
import type { Tool } from '../../tools/tool.js';
import type { ActivityDependencies, PinnedAgent } from '../activity-context.js';
import { THIS_WORKER, type ToolBlocked } from '../attempt.js';

export const START_NEW_RUN = 'start a new run, or deploy the earlier form of the tool';

/** Returns the worker's tool if its parameters match the pinned ones, else undefined. */
export function ifUnchanged(pinned: ToolDefinition, tool: Tool | undefined): Tool | undefined {
  const isSame =
    tool !== undefined && canonicalJson(tool.parameters) === canonicalJson(pinned.parameters);
  return isSame ? tool : undefined;
}

/** Returns a call as the worker's tool describes it for people; undefined if the tool has changed, or describes none. */
export async function describeUnchanged(
  { pinned, tool }: { readonly pinned: ToolDefinition; readonly tool: Tool | undefined },
  value: unknown,
): Promise<string | undefined> {
  const unchanged = ifUnchanged(pinned, tool);
  return unchanged && (await describeCall(unchanged, value));
}

/**
 * Creates a schema from the pinned JSON schema, for a worker whose tool has changed. If that is not
 * possible, the schema accepts every object: the tool's own schema checks the arguments before
 * execution.
 */
export function toPinnedInput(tool: ToolDefinition): z.ZodObject {
  // zod cannot read every schema of an MCP server or of a caller, so those have a separate check.
  if (tool.mcp !== undefined || tool.caller) return argumentsOf(tool.parameters);
  try {
    const schema = toZodType(tool.parameters);
    return schema instanceof z.ZodObject ? schema : z.looseObject({});
  } catch {
    return z.looseObject({});
  }
}

/** Explains why a call is blocked: the tool's effect differs from the pinned one. */
export function effectChangedMessage({ name, effect }: ToolDefinition, current: Effect): string {
  return `tool "${name}" was "${effect}" when the run began and is "${current}" now; ${START_NEW_RUN}`;
}

type FoundTool =
  | { readonly ok: true; readonly tool: Tool }
  | ({ readonly ok: false } & ToolBlocked);

/**
 * Maximum age in ms of the tool list for a tool with effect `read`; any other effect needs a fresh
 * list.
 */
const READ_AGE_MS = 60_000;
/**
 * Maximum wait in ms for a starting server. A slower one continues to start while the call is
 * retried.
 */
const WAIT_MS = 8_000;
/** Number of digits of a hash that people must type. */
const HASH_DIGITS = 16;

interface McpCall {
  readonly pinned: ToolDefinition;
  /** The definition that a person accepted in place of the pinned one. */
  readonly accepted: string | undefined;
  /** The answers to what the server has asked. */
  readonly answered?: AnsweredInput | undefined;
}

/**
 * Returns the run's pinned tool of an MCP server, or why the run is blocked: the server has changed
 * the tool or no longer has it. Rejects if the server cannot be reached; the call was not made
 * then.
 */
export async function findMcpTool(
  { mcp, blobs, toolLock }: Pick<ActivityDependencies, 'mcp' | 'blobs' | 'toolLock'>,
  agent: PinnedAgent,
  { pinned, accepted, answered }: McpCall,
): Promise<FoundTool> {
  const origin = pinned.mcp;
  const server = agent.agent?.mcp.find(({ name }) => name === origin?.server);
  if (origin === undefined || server === undefined) {
    return missing(
      `agent "${agent.definition.name}" has no MCP server "${origin?.server ?? ''}" on ${THIS_WORKER}; deploy it again, or cancel the run`,
    );
  }
  const session = mcp.of(server);
  const maxAgeMs = pinned.effect === 'read' ? READ_AGE_MS : 0;
  const listed = await session.listing({ maxAgeMs, waitMs: WAIT_MS }).catch(toBlock);
  if ('reason' in listed) return listed;
  const current = listed.tools.find(({ name }) => name === origin.tool);
  const odd = listed.odd.find(({ name }) => name === origin.tool);
  if (current === undefined || !isAllowedTool(server, current.name)) {
    const lost =
      odd === undefined ? 'no longer has' : `now lists (${odd.problem}) and so no longer has`;
    const why = current === undefined ? lost : 'is no longer configured to give this agent';
    return missing(
      `MCP server "${server.name}" ${why} tool "${origin.tool}"; restore it, or cancel the run`,
    );
  }
  const definition = current.hash.slice(0, HASH_DIGITS);
  const isPinned = current.hash === origin.hash;
  if (isPinned || definition === accepted) {
    const effect = effectOf(server, current);
    // In an accepted definition the effect may differ only if the pinned effect is the strictest
    // one.
    if (effect !== pinned.effect && (isPinned || pinned.effect !== 'once')) {
      return changed({ message: effectChangedMessage(pinned, effect) });
    }
    // Later runs need no further acceptance of what a person has accepted in this one.
    if (!isPinned) await acceptTools(toolLock, server, [current]);
    return { ok: true, tool: callTool(pinned, { session, blobs, answered }) };
  }
  const usable = usableTool(server, current);
  const begin = `MCP server "${server.name}" has changed tool "${origin.tool}" since it was accepted`;
  if (!usable.ok) return changed({ message: `${begin}, and now ${usable.problem}` });
  const accept = acceptCommand(server, origin.tool);
  return changed(describeChange(pinned, usable.definition, { begin, definition, accept }));
}

/**
 * Returns the block for an error that only a person can fix. Throws any other error, to be retried.
 */
function toBlock(error: unknown): FoundTool & { readonly ok: false } {
  if (error instanceof CallFault && error.kind === 'refused') {
    return { ok: false, reason: 'credentials', message: error.message };
  }
  if (error instanceof WorkerFaultError) {
    return { ok: false, reason: 'tool_missing', message: error.on(THIS_WORKER) };
  }
  throw error;
}

/**
 * Describes a changed tool. A person may accept the new definition, unless its effect differs: a
 * tool is never called with the guarantees of an effect that it no longer has.
 */
function describeChange(
  pinned: ToolDefinition,
  current: ToolDefinition,
  { begin, definition, accept }: Record<'begin' | 'definition' | 'accept', string>,
): Pick<ToolBlocked, 'message' | 'definition'> {
  const change = `${begin}:\n${describeToolChange(pinned, current)}\n`;
  if (pinned.effect !== 'once' && current.effect !== pinned.effect) {
    const message = `${change}Its effect has changed, so this run cannot use it; cancel this run, accept the change with "${accept}", and start a new run`;
    return { message };
  }
  const message = `${change}If this change is intended, accept the new form; otherwise deny the call`;
  return { message, definition };
}

function changed(problem: Pick<ToolBlocked, 'message' | 'definition'>): FoundTool {
  return { ok: false, reason: 'tool_changed', ...problem };
}

function missing(message: string): FoundTool {
  return { ok: false, reason: 'tool_missing', message };
}
