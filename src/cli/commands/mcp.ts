import { once } from 'node:events';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { withHostedWorker, type HostedWorker } from '../hosting/with-hosted-worker.js';
import { createHosting, type Hosting } from '../hosting/hosting.js';
import type { CliContext } from '../context.js';
import { mcpOwner } from '../mcp/owner.js';
import { runsServer } from '../mcp/runs-server.js';
import { takeStdout } from '../mcp/protocol-stdout.js';
import { noteServer } from '../hosting/note-server.js';
import { formatCount } from '../format/format.js';

const FAULT_CHARACTERS = 200;

export interface McpOptions {
  /** It answers for all runs, and not only for those that it has started. */
  readonly allRuns?: boolean;
}

/**
 * `mcp`: an MCP server over standard input and output, by which other programs start runs and talk to
 * them. It answers at once; Temporal and a worker are there by the time that a tool needs them. Whoever
 * calls it is a model, which may have been told anything: it answers only for the runs that it started.
 */
export const mcp: Command<McpOptions> = async (context, { allRuns = false }) => {
  const output = takeStdout();
  const { agents } = await context.config();
  const taskQueue = await context.taskQueue();
  return await withHostedWorker(context, taskQueue, async (host) => {
    let owner: Promise<string> | undefined;
    const others = new Map<string, Hosting>();
    /** A run may live on another queue than the one on which this process starts runs. */
    const hostingOf = (queue: string): Hosting => {
      if (queue === taskQueue) return host.hosting;
      const hosting = others.get(queue) ?? createHosting(context, queue);
      others.set(queue, hosting);
      return hosting;
    };
    const transport = new StdioServerTransport(process.stdin, output);
    const access = {
      agents: agents.map(({ name, description }) => ({ name, description })),
      taskQueue,
      client: () => context.client(),
      worked: (queue: string) => worked(hostingOf(queue)),
      owner: () => (owner ??= mcpOwner(context.home)),
      allRuns,
    };
    const serving = serveStdio(() => runsServer(access), {
      transport,
      onerror: (error) => context.note(`mcp: ${oneLine(error.message)}`),
    });
    const opened = telling(context, host);
    try {
      await untilLeft(host);
      return EXIT.completed;
    } finally {
      await serving.close().catch(() => undefined);
      await opened;
      await Promise.all([...others.values()].map((hosting) => hosting.stop()));
    }
  });
};

/** What is said of a line that is no message is long. */
function oneLine(text: string): string {
  return visible(text.replaceAll(/\s+/g, ' ')).slice(0, FAULT_CHARACTERS);
}

/** Nothing is started for nobody to do. */
async function worked(hosting: Hosting): Promise<boolean> {
  try {
    await hosting.ensure();
    return hosting.isHosting;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`nobody works on runs: ${why}`, { cause: error });
  }
}

/** Says on stderr which server and which worker there are. */
async function telling(context: CliContext, { ready, hosting, taskQueue }: HostedWorker): Promise<void> {
  try {
    const server = await context.server();
    noteServer(context, server);
    const { agents } = await context.config();
    await ready;
    const who = hosting.isHosting ? 'this process works on them' : 'a worker elsewhere does';
    context.note(
      `MCP server with ${formatCount(agents.length, 'agent')}; runs on ${server.address}, task queue "${taskQueue}": ${who}`,
    );
  } catch (error) {
    context.note(`mcp: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Until the client closes our input, somebody interrupts, or the own worker dies. Runs live on. */
async function untilLeft({ interrupt, hosting: { died } }: HostedWorker): Promise<void> {
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
