import { once } from 'node:events';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { CommandError, EXIT } from '../exit-codes.js';
import { withHostedWorker, type HostedWorker } from '../hosting/with-hosted-worker.js';
import { createHosting, type Hosting } from '../hosting/hosting.js';
import type { CliContext } from '../context.js';
import { mcpOwner } from '../mcp/owner.js';
import { runsServer } from '../mcp/runs-server.js';
import { openStores } from '../../storage/file-stores.js';
import { checkedMessages, takeStdout } from '../mcp/protocol-streams.js';
import { noteServer } from '../hosting/note-server.js';
import { formatCount } from '../format/format.js';

const FAULT_CHARACTERS = 200;

export interface McpOptions {
  /** Serve every run of the namespace, not only the runs that this server started. */
  readonly allRuns?: boolean;
  /** Let the client decide about requests, such as approvals. */
  readonly decide?: boolean;
}

/**
 * `mcp`: runs an MCP server over stdin and stdout, through which other programs start runs and send
 * them messages. It answers at once, and opens Temporal and a worker when a tool needs them. Its
 * caller is a model, which may have been manipulated: by default it serves only runs that it
 * started.
 */
export const mcp: Command<McpOptions> = {
  declare: (entry) => withOptions(entry, 'allRuns', 'decide'),
  async run(context, { allRuns = false, decide = false }) {
    const output = takeStdout();
    const { agents } = await context.config();
    const taskQueue = await context.taskQueue();
    return await withHostedWorker(context, taskQueue, async (host) => {
      let owner: Promise<string> | undefined;
      const others = new Map<string, Hosting>();
      /** A run may use a different queue from the one on which this process starts runs. */
      const hostingFor = (queue: string): Hosting => {
        if (queue === taskQueue) return host.hosting;
        const hosting = others.get(queue) ?? createHosting(context, queue);
        others.set(queue, hosting);
        return hosting;
      };
      const transport = new StdioServerTransport(checkedMessages(process.stdin, output), output);
      const access = {
        agents,
        taskQueue,
        client: () => context.client(),
        archive: openStores(context.home, context.env).archive,
        ensureWorker: (queue: string) => ensureWorker(hostingFor(queue)),
        owner: () => (owner ??= mcpOwner(context.home)),
        allRuns,
        canDecide: decide,
      };
      const serving = serveStdio(() => runsServer(access), {
        transport,
        onerror: (error) => context.note(`mcp: ${oneLine(error.message)}`),
      });
      const opened = noteReady(context, host);
      try {
        await untilClosed(host);
        return EXIT.completed;
      } finally {
        await serving.close().catch(() => undefined);
        await opened;
        await Promise.all([...others.values()].map((hosting) => hosting.stop()));
      }
    });
  },
};

/** Shortens the transport's error about an invalid line, which may quote the whole line. */
function oneLine(text: string): string {
  return visible(text.replaceAll(/\s+/g, ' ')).slice(0, FAULT_CHARACTERS);
}

/**
 * Waits for a worker, because no run may start without one. Returns whether this process hosts it.
 */
async function ensureWorker(hosting: Hosting): Promise<boolean> {
  try {
    await hosting.ensure();
    return hosting.isHosting;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError('no_worker', `no worker is running: ${reason}`, { cause: error });
  }
}

/** Notes on stderr which server and which worker are in use. */
async function noteReady(
  context: CliContext,
  { ready, hosting, taskQueue }: HostedWorker,
): Promise<void> {
  try {
    const server = await context.server();
    noteServer(context, server);
    const { agents } = await context.config();
    await ready;
    const worker = hosting.isHosting ? 'worker in this process' : 'worker elsewhere';
    context.note(
      `MCP server with ${formatCount(agents.length, 'agent')}; runs on ${server.address}, task queue "${taskQueue}", ${worker}`,
    );
  } catch (error) {
    context.note(`mcp: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * Resolves when the client closes stdin or on an interrupt; rejects if our worker dies. Runs
 * continue.
 */
async function untilClosed({ interrupt, hosting: { died } }: HostedWorker): Promise<void> {
  if (process.stdin.readableEnded || interrupt.aborted) return;
  const over = new AbortController();
  const { signal } = over;
  try {
    await Promise.race([
      once(process.stdin, 'close', { signal }),
      once(process.stdin, 'end', { signal }),
      once(interrupt, 'abort', { signal }),
      once(died, 'abort', { signal }).then(() => died.throwIfAborted()),
    ]);
  } finally {
    over.abort();
  }
}
