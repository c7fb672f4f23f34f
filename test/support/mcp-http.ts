import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { fixtureServer, type FixtureFiles } from './mcp-fixture.js';

/** A fixture server over streamable HTTP, with sessions. */
export interface HttpFixture {
  readonly url: string;
  readonly port: number;
  /** Headers of the requests so far. */
  readonly headers: readonly IncomingMessage['headers'][];
  /** Closes all connections abruptly, like a process that is killed. */
  stop(): Promise<void>;
}

/** `answer`: handles a request before the server sees it; a status ends the request. */
export async function httpFixture(
  files: FixtureFiles,
  {
    port = 0,
    answer = () => null,
  }: { port?: number; answer?: (body: string) => number | 'drop' | 'cut' | null } = {},
): Promise<HttpFixture> {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const headers: IncomingMessage['headers'][] = [];
  const http = createServer((request, response) => {
    headers.push(request.headers);
    void serve(request, response, { files, sessions, answer });
  });
  http.listen(port, '127.0.0.1');
  await once(http, 'listening');
  const used = (http.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${used}/mcp`,
    port: used,
    headers,
    async stop() {
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
}

interface Parts {
  readonly files: FixtureFiles;
  readonly sessions: Map<string, WebStandardStreamableHTTPServerTransport>;
  readonly answer: (body: string) => number | 'drop' | 'cut' | null;
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  parts: Parts,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString();
  const end = parts.answer(body);
  if (end === 'drop') return void request.socket.destroy();
  if (end === 'cut')
    return void response.writeHead(200, { 'content-type': 'text/event-stream' }).end();
  if (end !== null) return void response.writeHead(end).end();
  const { sessions } = parts;
  const transport =
    sessions.get(String(request.headers['mcp-session-id'] ?? '')) ?? (await opened(request, parts));
  if (transport === null) return void response.writeHead(404).end('no such session');
  const web = await transport.handleRequest(
    new Request(`http://127.0.0.1${request.url ?? '/'}`, {
      method: request.method ?? 'GET',
      headers: Object.entries(request.headers).map(([name, value]): [string, string] => [
        name,
        String(value),
      ]),
      ...(body !== '' && { body }),
    }),
  );
  response.writeHead(web.status, Object.fromEntries(web.headers));
  response.flushHeaders();
  if (web.body === null) return void response.end();
  Readable.fromWeb(web.body)
    .on('error', () => response.destroy())
    .pipe(response);
}

/** Null for a session that this process does not know (any more). */
async function opened(
  request: IncomingMessage,
  { files, sessions }: Parts,
): Promise<WebStandardStreamableHTTPServerTransport | null> {
  if (request.headers['mcp-session-id'] !== undefined) return null;
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void sessions.set(id, transport),
  });
  await fixtureServer(files).connect(transport);
  return transport;
}
