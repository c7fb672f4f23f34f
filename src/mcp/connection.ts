import { setTimeout as pause } from 'node:timers/promises';
import type { Client, ClientOptions, JsonSchemaValidator } from '@modelcontextprotocol/client';
import { CallFault } from '../tools/arguments/call-fault.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import { ownVersion } from '../storage/own-version.js';
import { isRefusedKey, refusedKey } from './call-faults.js';
import type { McpServer } from './mcp-server.js';
import {
  serverEnvironment,
  WorkerFaultError,
  type Environment,
  type ServerEnvironment,
} from './server-environment.js';
import { openTransport, type OpenTransport } from './transport.js';

/** An open connection to a server. */
export interface McpConnection {
  readonly client: Client;
  /** Closes the connection; a child process gets time to end and is then killed. Never rejects. */
  close(): Promise<void>;
}

/** Accepts all results: the model reads them unchanged, regardless of the server's schema. */
const UNCHECKED: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator<T>(): JsonSchemaValidator<T> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing relies on it
    return (input) => ({ valid: true, data: input as T, errorMessage: undefined });
  },
};
/** Milliseconds to wait for a server to end its session. */
const END_SESSION_MS = 1_000;

/** The events of a connection, and the signal that interrupts its handshake. */
export interface ConnectionEvents {
  /** The server has closed the connection or has died. */
  readonly onLost: () => void;
  /** The server reports that its tools have changed. */
  readonly onToolsChanged: () => void;
  /** Aborts a handshake in progress. */
  readonly signal: AbortSignal;
}

/**
 * Connects to a server: starts or reaches it, and performs the handshake. Rejects with an error
 * that names the server and includes the end of its standard error, without secrets.
 */
export async function connect(
  server: McpServer,
  env: Environment,
  events: ConnectionEvents,
): Promise<McpConnection> {
  const handed = serverEnvironment(server, env);
  // A server that supports only the newest protocol refuses the older handshake; then a second
  // process is needed.
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
  how: { handed: ServerEnvironment; events: ConnectionEvents; mode: 'legacy' | 'auto' },
): Promise<McpConnection> {
  const { Client } = await import('@modelcontextprotocol/client');
  const open = await openTransport(server, how.handed);
  const client = new Client(
    { name: 'perdure', version: ownVersion() },
    { versionNegotiation: { mode: how.mode }, jsonSchemaValidator: UNCHECKED },
  );
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK's client is not an event target
  client.onclose = how.events.onLost;
  // A fault of the transport either rejects its request or ends in `onclose`.
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
    throw withStderr(error, open);
  }
  return {
    client,
    async close() {
      await Promise.race([open.endSession().catch(() => undefined), pause(END_SESSION_MS)]);
      await client.close().catch(() => undefined);
    },
  };
}

/**
 * Adds why the connection failed: a breach of the limits, or the end of the child's standard error.
 */
function withStderr(error: unknown, open: OpenTransport): unknown {
  const breach = open.breach();
  if (breach !== null) return new Error(breach, { cause: error });
  const tail = open.stderrTail();
  if (tail === '') return error;
  return new Error(`${normalizeError(error).message}; it wrote: ${tail}`, { cause: error });
}

/** Returns whether the server has answered the handshake with a refusal. */
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
      `${text}; check that the command is installed on this worker and that \`cwd\` exists`,
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
