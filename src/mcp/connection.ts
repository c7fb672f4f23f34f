import { setTimeout as pause } from 'node:timers/promises';
import type { Client, ClientOptions, JsonSchemaValidator } from '@modelcontextprotocol/client';
import { CallFault } from '../tools/arguments/call-fault.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import { ownVersion } from '../version.js';
import { isRefusedKey, refusedKey } from './fault-of.js';
import type { McpServer } from './mcp-server.js';
import { handedTo, WorkerFaultError, type Environment, type Handed } from './handed.js';
import { openTransport, type OpenTransport } from './transport.js';

/** One living connection to a server. */
export interface McpConnection {
  readonly client: Client;
  /** Ends it; a child process is told, then made, to end. Never rejects. */
  close(): Promise<void>;
}

/** Results are shown to the model as they are: what a server promises of their form is its own affair. */
const UNCHECKED: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator<T>(): JsonSchemaValidator<T> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing relies on it
    return (input) => ({ valid: true, data: input as T, errorMessage: undefined });
  },
};
/** Of a list of tools, with a thousand at most in each. */
const MOST_PAGES = 20;
/** Of the end of a session that a server keeps for us. */
const FAREWELL_MS = 1_000;

export interface ConnectionEvents {
  /** The server has closed it, or died. */
  readonly onLost: () => void;
  /** The server says that its tools are others now. */
  readonly onToolsChanged: () => void;
  /** Breaks off a handshake that is under way. */
  readonly signal: AbortSignal;
}

/**
 * Connects to a server: starts it, or reaches it, and shakes hands. Rejects with the server's name, what
 * it wrote to its standard error, and no secret.
 */
export async function connect(
  server: McpServer,
  env: Environment,
  events: ConnectionEvents,
): Promise<McpConnection> {
  const handed = handedTo(server, env);
  // A server of the newest protocol alone refuses the older handshake; a second process is only then paid for.
  const modes = server.transport === 'http' ? (['auto'] as const) : (['legacy', 'auto'] as const);
  const [first, second] = modes;
  try {
    return await attempt(server, { handed, events, mode: first });
  } catch (error) {
    if (second === undefined || !(await isRefusal(error))) throw unreachable(server, error);
  }
  return await attempt(server, { handed, events, mode: second }).catch((error: unknown) => {
    throw unreachable(server, error);
  });
}

async function attempt(
  server: McpServer,
  how: { handed: Handed; events: ConnectionEvents; mode: 'legacy' | 'auto' },
): Promise<McpConnection> {
  const { Client } = await import('@modelcontextprotocol/client');
  const open = await openTransport(server, how.handed);
  const client = new Client(
    { name: 'perdure', version: ownVersion() },
    {
      versionNegotiation: { mode: how.mode },
      jsonSchemaValidator: UNCHECKED,
      listMaxPages: MOST_PAGES,
    },
  );
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK's client is no event target
  client.onclose = how.events.onLost;
  // Faults of a transport that concern a request reject that request; the others end in `onclose`.
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the same
  client.onerror = () => undefined;
  client.setNotificationHandler('notifications/tools/list_changed', how.events.onToolsChanged);
  try {
    await client.connect(open.transport, {
      timeout: server.connectMs,
      signal: how.events.signal,
    });
  } catch (error) {
    await client.close().catch(() => undefined);
    await open.transport.close().catch(() => undefined);
    throw withLastWords(error, open);
  }
  return {
    client,
    async close() {
      await Promise.race([open.farewell().catch(() => undefined), pause(FAREWELL_MS)]);
      await client.close().catch(() => undefined);
    },
  };
}

/** What a child wrote to its standard error says more than that it ended. */
function withLastWords(error: unknown, open: OpenTransport): unknown {
  const breach = open.breach();
  if (breach !== null) return new Error(breach, { cause: error });
  const words = open.lastWords();
  if (words === '') return error;
  return new Error(`${normalizeError(error).message}; it wrote: ${words}`, { cause: error });
}

/** The server has answered the handshake, and does not want it. */
async function isRefusal(error: unknown): Promise<boolean> {
  const { ProtocolError } = await import('@modelcontextprotocol/client');
  return [error, error instanceof Error ? error.cause : null].some((each) =>
    ProtocolError.isInstance(each),
  );
}

function unreachable(server: McpServer, error: unknown): Error {
  const where = server.transport === 'stdio' ? server.command : new URL(server.url).origin;
  const { message } = normalizeError(error);
  const text = `MCP server "${server.name}" (${where}) cannot be reached: ${message}`;
  if (server.transport === 'stdio') {
    if (fieldOf(error, 'code') !== 'ENOENT') return new Error(text);
    return new WorkerFaultError(
      `${text}; is the command installed on this worker, and \`cwd\` there?`,
    );
  }
  const status = fieldOf(error, 'status');
  if (!isRefusedKey(status)) return new Error(text);
  return new CallFault('refused', refusedKey(server, status));
}

function fieldOf(error: unknown, field: 'code' | 'status'): unknown {
  if (typeof error !== 'object' || error === null) return undefined;
  return Reflect.get(error, field);
}
