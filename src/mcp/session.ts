import { setTimeout as pause } from 'node:timers/promises';
import type { JsonObject } from '../core/json.js';
import { CallFault } from '../tools/arguments/call-fault.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import type { McpConnection } from './connection.js';
import { faultOf } from './fault-of.js';
import { createLink } from './link.js';
import { listedTool, type ListedTool } from './listed-tool.js';
import type { McpServer } from './mcp-server.js';
import type { Environment } from './handed.js';

/** What a worker has of one server. */
export interface McpSession {
  /**
   * The server's tools, as it listed them at most `maxAgeMs` ago. Waits at most `waitMs` for a server
   * that is still starting; it goes on starting for the next who asks.
   */
  listing(how: { maxAgeMs: number; waitMs?: number }): Promise<readonly ListedTool[]>;
  /** Rejects with a `ToolError` where the server answered, with a `CallFault` where it did not. */
  call(tool: string, args: JsonObject, how: CallOptions): Promise<unknown>;
  /** Ends the connection and a process that was started for it. Never rejects. */
  close(): Promise<void>;
}

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
/** Beyond every clock of ours: the call's own signal ends it. */
const CALL_TIMEOUT_MS = 2_147_000_000;
/** By which a server can recognize a call that is made again. */
const KEY_FIELD = 'perdure/idempotency-key';

export function createSession(server: McpServer, env: Environment): McpSession {
  let known: Promise<Listing> | null = null;
  const link = createLink(server, env, () => (known = null));

  const listing = async (maxAgeMs: number): Promise<readonly ListedTool[]> => {
    const before = known && (await known.catch(() => null));
    if (before !== null && Date.now() - before.at <= maxAgeMs) return before.tools;
    const asked = link.use((connection) => list(server, connection));
    known = asked;
    return (await asked).tools;
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
          const asked = { name: tool, arguments: args, _meta: { [KEY_FIELD]: idempotencyKey } };
          return await callOver(server, connection, { asked, signal });
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
    const fault = await faultOf(error, server);
    // Whatever it is, nothing has happened, and a fresh connection is worth a try.
    if (fault instanceof CallFault && fault.kind === 'refused') throw fault;
    throw new CallFault('unsent', `its tools cannot be listed: ${fault.message}`);
  }
}

async function callOver(
  server: McpServer,
  { client }: McpConnection,
  call: { asked: Parameters<McpConnection['client']['callTool']>[0]; signal: AbortSignal },
): Promise<unknown> {
  const { asked, signal } = call;
  try {
    return await client.callTool(asked, { signal, timeout: CALL_TIMEOUT_MS });
  } catch (error) {
    // Broken off from here: that says nothing about the server.
    signal.throwIfAborted();
    throw await faultOf(error, server);
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
