import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { HttpServerOptions, McpServer, StdioServerOptions } from './mcp-server.js';

/** A way to a server, with what the protocol itself has no words for. */
export interface OpenTransport {
  readonly transport: Transport;
  /** The end of what a child wrote to its standard error; empty for others. */
  lastWords(): string;
  /** Ends the session that the server keeps, where it keeps one. */
  farewell(): Promise<void>;
}

/** The code of the error that stands for an answer which will not come. */
export const STREAM_ENDED = -32_990;

const MOST_MESSAGE_BYTES = 64 * 1024 * 1024;
const LAST_WORDS = 1_000;

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
  return {
    transport,
    lastWords: listenTo(transport),
    farewell: async () => undefined,
  };
}

function listenTo({ stderr }: StdioClientTransport): () => string {
  let heard = '';
  stderr?.on('data', (chunk: Buffer) => {
    heard = (heard + chunk.toString()).slice(-LAST_WORDS);
  });
  return () => heard.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
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
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  answerEndedStreams(transport);
  return {
    transport,
    lastWords: () => '',
    farewell: () => transport.terminateSession(),
  };
}

/** The SDK waits for an answer although the stream that was to bring it has ended; a caller must not. */
function answerEndedStreams(transport: Transport): void {
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    const id = idOf(message);
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.();
      const error = { code: STREAM_ENDED, message: 'the connection ended before the answer came' };
      if (id !== null) transport.onmessage?.({ jsonrpc: '2.0', id, error });
    };
    await send(message, { ...options, onRequestStreamEnd });
  };
}

/** Of a request; null for what is answered by nothing. */
function idOf(message: JSONRPCMessage): string | number | null {
  return 'method' in message && 'id' in message ? message.id : null;
}
