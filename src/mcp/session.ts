import { setTimeout as pause } from 'node:timers/promises';
import type { JsonObject } from '../core/json.js';
import { CallFault } from '../tools/arguments/call-fault.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import type { McpConnection } from './connection.js';
import { toCallFault } from './call-faults.js';
import { createLink } from './link.js';
import { listedTool, type ListedTool } from './listed-tool.js';
import type { McpServer } from './mcp-server.js';
import type { Environment } from './server-environment.js';

/** A worker's access to one server. */
export interface McpSession {
  /**
   * Returns the server's tools, listed at most `maxAgeMs` ago. Waits at most `waitMs` for a server
   * that is still starting, and then rejects with a `CallFault`; the server continues to start.
   */
  listing(how: { maxAgeMs: number; waitMs?: number }): Promise<readonly ListedTool[]>;
  /**
   * Calls a tool. Rejects with a `ToolError` if the server answered, with a `CallFault` if it did
   * not.
   */
  call(tool: string, args: JsonObject, how: CallOptions): Promise<unknown>;
  /** Closes the connection and ends a process that was started for it. Never rejects. */
  close(): Promise<void>;
}

/** Options of one call. */
export interface CallOptions {
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
}

interface Listing {
  readonly tools: readonly ListedTool[];
  /** Unix time in ms. */
  readonly at: number;
}

const LIST_TIMEOUT_MS = 10_000;
/** Longer than every other limit, because the call's signal ends it. */
const CALL_TIMEOUT_MS = 2_147_000_000;
/** The field by which a server can recognize a repeated call. */
const KEY_FIELD = 'perdure/idempotency-key';

/** Creates the session of one server, which connects on demand. */
export function createSession(server: McpServer, env: Environment): McpSession {
  let known: Promise<Listing> | null = null;
  const link = createLink(server, env, () => (known = null));

  const listing = async (maxAgeMs: number): Promise<readonly ListedTool[]> => {
    const before = known && (await known.catch(() => null));
    if (before !== null && Date.now() - before.at <= maxAgeMs) return before.tools;
    const pending = link.use((connection) => list(server, connection));
    known = pending;
    return (await pending).tools;
  };

  return {
    async listing({ maxAgeMs, waitMs }) {
      const tools = listing(maxAgeMs);
      return waitMs === undefined ? await tools : await within(waitMs, server.name, tools);
    },
    async call(tool, args, { signal, idempotencyKey }) {
      let isSent = false;
      try {
        return await link.use(async (connection) => {
          isSent = true;
          const request = { name: tool, arguments: args, _meta: { [KEY_FIELD]: idempotencyKey } };
          return await callOver(server, connection, { request, signal });
        });
      } catch (error) {
        if (isSent || error instanceof CallFault) throw error;
        throw new CallFault('unsent', normalizeError(error).message);
      }
    },
    close: () => link.close(),
  };
}

async function list(server: McpServer, { client }: McpConnection): Promise<Listing> {
  const at = Date.now();
  try {
    const { tools } = await client.listTools(undefined, {
      timeout: LIST_TIMEOUT_MS,
      cacheMode: 'refresh',
    });
    return { tools: tools.flatMap((tool) => listedTool(tool) ?? []), at };
  } catch (error) {
    const fault = await toCallFault(error, server);
    // Regardless of the fault, nothing was executed, and a new connection may help.
    if (fault instanceof CallFault && fault.kind === 'refused') throw fault;
    throw new CallFault('unsent', `its tools cannot be listed: ${fault.message}`);
  }
}

async function callOver(
  server: McpServer,
  { client }: McpConnection,
  call: { request: Parameters<McpConnection['client']['callTool']>[0]; signal: AbortSignal },
): Promise<unknown> {
  const { request, signal } = call;
  try {
    return await client.callTool(request, { signal, timeout: CALL_TIMEOUT_MS });
  } catch (error) {
    // An abort on our side is not a fault of the server.
    signal.throwIfAborted();
    throw await toCallFault(error, server);
  }
}

async function within<T>(waitMs: number, name: string, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const late = pause(waitMs, undefined, { signal: over.signal }).then(() => {
    const message = `MCP server "${name}" has not answered within ${waitMs / 1_000} s`;
    throw new CallFault('unsent', message);
  });
  late.catch(() => undefined);
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
  }
}
