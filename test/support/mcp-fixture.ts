import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { Server, type CallToolResult, type Tool } from '@modelcontextprotocol/server';

/** What a fixture server offers, and where it logs the requests that it receives. */
export interface FixtureFiles {
  /** JSON: a list of tools, reread each time they are listed. */
  readonly tools: string;
  /** A line of JSON for each call that arrives. */
  readonly ledger: string;
}

/** A call as the server saw it. */
export interface Seen {
  readonly tool: string;
  readonly args: Record<string, unknown>;
  readonly key: string;
  readonly pid: number;
}

export function seen(ledger: string): readonly Seen[] {
  if (!existsSync(ledger)) return [];
  const lines = readFileSync(ledger, 'utf8').trim().split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Seen);
}

/** An image of one pixel. */
export const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

type Answer = (seen: Seen, times: number) => CallToolResult | Promise<CallToolResult>;

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] });

/** The implementations of the tools, by name; any other tool echoes its arguments. */
const ANSWERS: Readonly<Record<string, Answer>> = {
  environment: () => text(JSON.stringify(process.env)),
  failing_environment: () => ({ ...text(JSON.stringify(process.env)), isError: true }),
  stored_environment: () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'file:///environ',
          blob: Buffer.from(JSON.stringify(process.env)).toString('base64'),
        },
      },
    ],
  }),
  structured: () => ({
    content: [{ type: 'text', text: '{"total": 3}' }],
    structuredContent: { total: 3 },
  }),
  picture: () => ({
    content: [
      { type: 'text', text: 'a pixel' },
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: { uri: 'file:///notes.txt', mimeType: 'text/plain', text: 'a note' },
      },
    ],
  }),
  broken: () => ({ ...text('the disk is full: free 3 GB'), isError: true }),
  // Exits in the middle of the first call, like a server that is killed.
  dies_once: async ({ pid }, times) => {
    if (times === 1) process.kill(pid, 'SIGKILL');
    return await new Promise((resolve) => setTimeout(() => resolve(text('alive')), 1));
  },
};

/** A server built with the SDK, whose tools are listed in a file. */
export function fixtureServer(files: FixtureFiles): Server {
  const server = new Server(
    { name: 'fixture', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true } } },
  );
  server.setRequestHandler('tools/list', () => ({
    tools: JSON.parse(readFileSync(files.tools, 'utf8')) as Tool[],
  }));
  server.setRequestHandler('tools/call', async ({ params }) => {
    const { name: tool, arguments: args = {}, _meta: meta } = params;
    const key = (meta?.['perdure/idempotency-key'] ?? '') as string;
    const call: Seen = { tool, args, key, pid: process.pid };
    appendFileSync(files.ledger, `${JSON.stringify(call)}\n`);
    const times = seen(files.ledger).filter((each) => each.tool === tool).length;
    return (await ANSWERS[tool]?.(call, times)) ?? text(JSON.stringify(args));
  });
  return server;
}
