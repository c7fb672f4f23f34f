import type { JSONRPCMessage, ReadBuffer, Transport } from '@modelcontextprotocol/client';
import type { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { redactMessage } from '../secrets/redact.js';
import { cappedFetch } from './capped-fetch.js';
import { guardTransport, type TransportGuard } from './guarded-transport.js';
import { MOST_MESSAGE_BYTES, textProblem, TOO_LONG } from './message-limits.js';
import type { HttpServerOptions, McpServer, StdioServerOptions } from './mcp-server.js';

/** A way to a server, with what the protocol itself has no words for. */
export interface OpenTransport {
  readonly transport: Transport;
  /** The end of what a child wrote to its standard error; empty for others. */
  lastWords(): string;
  /** What the server did that ended the connection; null where it did nothing of the kind. */
  breach(): string | null;
  /** Ends the session that the server keeps, where it keeps one. */
  farewell(): Promise<void>;
}

const LAST_WORDS = 1_000;
/** More is kept, so that no secret is cut before it is redacted. */
const KEPT_WORDS = 16_000;

export async function openTransport(
  server: McpServer,
  values: ReadonlyMap<string, string>,
): Promise<OpenTransport> {
  return server.transport === 'stdio'
    ? await openStdio(server, values)
    : await openHttp(server, values);
}

/**
 * The child reads its standard input from this process alone. So when this process ends, in whichever
 * way, the input ends, which tells every MCP server to end too.
 */
async function openStdio(
  { command, args = [], cwd }: Pick<StdioServerOptions, 'command' | 'args' | 'cwd'>,
  values: ReadonlyMap<string, string>,
): Promise<OpenTransport> {
  const { StdioClientTransport: Stdio } = await import('@modelcontextprotocol/client/stdio');
  const transport = new Stdio({
    command,
    args: [...args],
    env: Object.fromEntries(values),
    stderr: 'pipe',
    maxBufferSize: MOST_MESSAGE_BYTES,
    ...(cwd !== undefined && { cwd }),
  });
  const { deserializeMessage } = await import('@modelcontextprotocol/client');
  const guard = guardTransport(transport);
  Reflect.set(transport, '_readBuffer', messageBuffer(deserializeMessage, guard));
  return {
    transport,
    lastWords: listenTo(transport),
    breach: guard.reason,
    farewell: async () => undefined,
  };
}

/** In the place of the SDK's own buffer, which copies all of a long line again with each piece of it. */
function messageBuffer(
  read: (line: string) => JSONRPCMessage,
  guard: TransportGuard,
): Pick<ReadBuffer, 'append' | 'readMessage' | 'clear'> {
  const lines = createLineBuffer();
  return {
    append(chunk) {
      try {
        lines.append(chunk);
      } catch (error) {
        guard.breach(error instanceof Error ? error.message : String(error));
        throw error;
      }
    },
    readMessage() {
      for (let line = lines.next(); line !== null; line = lines.next()) {
        try {
          return read(line);
        } catch (error) {
          guard.unreadable();
          if (guard.reason() !== null) lines.clear();
          // Some servers write to their standard output what is no message.
          if (!(error instanceof SyntaxError)) throw error;
        }
      }
      return null;
    },
    clear: () => lines.clear(),
  };
}

function listenTo({ stderr }: StdioClientTransport): () => string {
  let heard = '';
  stderr?.on('data', (chunk: Buffer) => {
    heard = (heard + chunk.subarray(-4 * KEPT_WORDS).toString()).slice(-KEPT_WORDS);
  });
  return () =>
    redactMessage(heard)
      .slice(-LAST_WORDS)
      .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
      .trim();
}

async function openHttp(
  { url, authEnv, headersEnv = {} }: Pick<HttpServerOptions, 'url' | 'authEnv' | 'headersEnv'>,
  values: ReadonlyMap<string, string>,
): Promise<OpenTransport> {
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const named = Object.entries(headersEnv).map(([header, name]) => [
    header,
    values.get(name) ?? '',
  ]);
  const headers: Record<string, string> = Object.fromEntries(named);
  if (authEnv !== undefined) headers['Authorization'] = `Bearer ${values.get(authEnv) ?? ''}`;
  const fetchCapped = cappedFetch((reason) => guard.breach(reason));
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: fetchCapped,
  });
  const guard = guardTransport(transport);
  return {
    transport,
    lastWords: () => '',
    breach: guard.reason,
    farewell: () => transport.terminateSession(),
  };
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** The lines of a stream of bytes. */
interface LineBuffer {
  append(chunk: Buffer): void;
  /** The next whole line without its end; null where none is there yet. */
  next(): string | null;
  clear(): void;
}

/**
 * Splits what a server writes into lines, in time proportional to what comes. Throws, with what the server
 * did, at a line that is too long or would become too many values, finished or not.
 */
export function createLineBuffer(): LineBuffer {
  let lines: string[] = [];
  let taken = 0;
  let open: Buffer[] = [];
  let openBytes = 0;

  const close = (end: Buffer): void => {
    const line = Buffer.concat([...open, end]);
    [open, openBytes] = [[], 0];
    const problem = textProblem(line);
    if (problem !== null) throw new Error(problem);
    const bytes = line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
    lines.push(bytes.toString('utf8'));
  };

  return {
    append(chunk) {
      let from = 0;
      for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
        close(chunk.subarray(from, at));
        from = at + 1;
      }
      const rest = chunk.subarray(from);
      open.push(rest);
      openBytes += rest.length;
      if (openBytes > MOST_MESSAGE_BYTES) throw new Error(TOO_LONG);
    },
    next() {
      const line = lines[taken];
      if (line === undefined) [lines, taken] = [[], 0];
      else taken += 1;
      return line ?? null;
    },
    clear() {
      [lines, taken, open, openBytes] = [[], 0, [], 0];
    },
  };
}
