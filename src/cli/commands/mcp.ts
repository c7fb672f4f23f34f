import { once } from 'node:events';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Config } from '../../config.js';
import { visible } from '../../core/state/summaries.js';
import { shorten, printable, show } from '../../core/text/text.js';
import {
  type ChangedTool,
  type UsedTool,
  acceptTools,
  compareTools,
  describeToolChange,
  lockName,
  serverTools,
} from '../../mcp/lock-tools.js';
import type { McpServer } from '../../mcp/mcp-server.js';
import { createSessions } from '../../mcp/session.js';
import { likelyMeant, nearestFirst } from '../../validation/near-names.js';
import { normalizeError } from '../../tools/result/plain.js';
import type { ToolLock } from '../../storage/tool-lock.js';
import { type CliContext, type Command, CommandError, EXIT, UsageError } from '../context.js';
import { formatCount } from '../format/format.js';
import { type Hosting, createHosting } from '../hosting/hosting.js';
import { noteServer } from '../hosting/server-notes.js';
import { type HostedWorker, withHostedWorker } from '../hosting/with-worker.js';
import { type Confirmation, confirm, requireConfirmable } from '../input/confirm.js';
import { withOptions } from '../input/options.js';
import { runnableText } from '../reports/next-command.js';
import { mcpOwner } from '../mcp/owner.js';
import { runsServer } from '../mcp/runs-server.js';
import { checkedMessages, takeStdout } from '../mcp/stdio-messages.js';

const FAULT_CHARACTERS = 200;

interface McpOptions {
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
    return await withHostedWorker(context, { taskQueue }, async (host) => {
      let owner: Promise<string> | undefined;
      const others = new Map<string, Hosting>();
      /** A run may use a different queue from the one on which this process starts runs. */
      const hostingFor = (queue: string): Hosting => {
        if (queue === taskQueue) return host.hosting;
        const hosting = others.get(queue) ?? createHosting(context, queue);
        others.set(queue, hosting);
        return hosting;
      };
      const note = (text: string): void => context.note(`mcp: ${oneLine(text)}`);
      const transport = new StdioServerTransport(
        checkedMessages(process.stdin, output, note),
        output,
      );
      const { archive, blobs } = await context.stores();
      const access = {
        options: context.options,
        env: context.env,
        agents,
        taskQueue,
        client: () => context.client(),
        archive,
        blobs,
        ensureWorker: (queue: string) => ensureWorker(hostingFor(queue)),
        owner: () => (owner ??= mcpOwner(context.home)),
        allRuns,
        canDecide: decide,
      };
      const serving = serveStdio(() => runsServer(access), {
        transport,
        onerror: (error) => note(error.message),
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
  return shorten(visible(text.replaceAll(/\s+/g, ' ')), FAULT_CHARACTERS);
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
    const message = error instanceof Error ? error.message : String(error);
    context.note(`mcp: ${runnableText(context, message)}`);
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

export interface McpAcceptOptions {
  readonly server?: string;
  readonly tool?: string;
  /** Only show the changes. */
  readonly dryRun?: boolean;
  /** Do not ask at the terminal. */
  readonly yes?: boolean;
}

/** A tool whose present form has not been accepted. */
interface Unaccepted {
  readonly server: McpServer;
  readonly used: UsedTool;
  /** The accepted form; null if there is none. */
  readonly change: ChangedTool | null;
}

/** A server whose tools could not be listed. */
interface FailedServer {
  readonly server: McpServer;
  readonly message: string;
}

interface Findings {
  readonly found: readonly Unaccepted[];
  readonly failed: readonly FailedServer[];
  /** The names of the servers whose tools were listed. */
  readonly answered: readonly string[];
}

const WAIT_MS = 30_000;

/**
 * `mcp accept [SERVER] [TOOL]`: shows the tools of the configuration's MCP servers that have changed
 * or are new, with the difference, and accepts their present form for later runs. It asks
 * first; without a terminal, it requires `--yes`.
 */
export const mcpAccept: Command<McpAcceptOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('[server]', 'the name of a server in the configuration; default: all')
        .argument('[tool]', "the server's own name of a tool; default: all"),
      'dryRun',
      'yes',
    ),
  async run(context, { server: name, tool, dryRun = false, yes = false }) {
    const servers = serversOf(await context.config(), name);
    const { toolLock } = await context.stores();
    const findings = await findUnaccepted({ toolLock, env: context.env }, servers, tool);
    const { found, failed } = findings;
    const isOnlyShown = dryRun || found.length === 0;
    const asks = !isOnlyShown && !yes;
    // A misspelled name is refused first.
    if (asks) requireConfirmable(context, { yes, dryRun });
    const answer = asks ? await confirmed(context, found) : 'yes';
    const isAccepted = !isOnlyShown && answer === 'yes';
    if (isAccepted) {
      for (const server of new Set(found.map((each) => each.server))) {
        const own = found.filter((each) => each.server === server);
        await acceptTools(
          toolLock,
          server,
          own.map(({ used }) => used.listed),
        );
      }
    }
    report(context, findings, { isAccepted, isShown: asks });
    if (answer === 'interrupted') return EXIT.interrupted;
    const isDone = found.length === 0 || isAccepted || dryRun;
    return isDone && failed.length === 0 ? EXIT.completed : EXIT.failed;
  },
};

/** Returns the servers of the configuration, each once. Throws a `UsageError` for an unknown name. */
function serversOf({ agents }: Config, name: string | undefined): readonly McpServer[] {
  const all = new Set(agents.flatMap(({ mcp: servers }) => servers));
  const named = [...all].filter((server) => name === undefined || server.name === name);
  if (named.length > 0 || name === undefined) return named;
  const known = nearestFirst(name, [...new Set([...all].map((server) => server.name))]);
  throw new UsageError(
    `server: expected an MCP server of the configuration (${known.join(', ') || 'none'}), got ${show(name)}${meantBy(name, known)}`,
  );
}

function meantBy(name: string, known: readonly string[]): string {
  const meant = likelyMeant(name, known);
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}

async function findUnaccepted(
  { toolLock, env }: { readonly toolLock: ToolLock; readonly env: CliContext['env'] },
  servers: readonly McpServer[],
  tool: string | undefined,
): Promise<Findings> {
  const sessions = createSessions(env);
  try {
    const known: string[] = [];
    const answered = new Set<string>();
    const failed = new Map<string, FailedServer>();
    const found = await Promise.all(
      servers.map(async (server): Promise<readonly Unaccepted[]> => {
        const listed = await sessions
          .of(server)
          .listing({ maxAgeMs: WAIT_MS, waitMs: WAIT_MS })
          .catch((error: unknown) => {
            const { message } = normalizeError(error);
            // Agents with different selections share a server.
            failed.set(`${server.name} ${message}`, { server, message });
            return null;
          });
        if (listed === null) return [];
        answered.add(server.name);
        const { used } = serverTools(server, listed);
        known.push(...used.map((each) => each.listed.name));
        const chosen = used.filter((each) => tool === undefined || each.listed.name === tool);
        const { unknown, changed } = await compareTools(toolLock, server, chosen);
        return [
          ...changed.map((change) => {
            return { server, change, used: { listed: change.listed, definition: change.now } };
          }),
          ...unknown.map((each) => ({ server, change: null, used: each })),
        ];
      }),
    );
    // Agents with different selections share a server's lock.
    const all = new Map(
      found.flat().map((each) => [`${lockName(each.server)} ${each.used.listed.name}`, each]),
    );
    // A server that failed may have the tool.
    if (tool === undefined || known.includes(tool) || failed.size > 0) {
      return { found: [...all.values()], failed: [...failed.values()], answered: [...answered] };
    }
    const names = known.slice(0, 40).join(', ') || 'none';
    throw new UsageError(
      `tool: expected a tool that an agent uses (${names}), got ${show(tool)}${meantBy(tool, known)}`,
    );
  } finally {
    await sessions.close();
  }
}

/** Shows the changes, and asks a person at the terminal. */
async function confirmed(context: CliContext, found: readonly Unaccepted[]): Promise<Confirmation> {
  for (const each of found) for (const line of shownChange(each)) context.note(line);
  return await confirm(`accept ${formatCount(found.length, 'tool')}?`);
}

/** `isShown`: the changes were shown with the question. */
function report(
  context: CliContext,
  { found, failed, answered }: Findings,
  { isAccepted, isShown }: { readonly isAccepted: boolean; readonly isShown: boolean },
): void {
  if (context.options.json) {
    const tools = found.map(({ server, used, change }) => ({
      server: server.name,
      tool: used.listed.name,
      hash: used.listed.hash,
      before: change?.accepted.hash ?? null,
      difference: shownChange({ server, used, change }).slice(1).join('\n'),
    }));
    const lost = failed.map(({ server, message }) => ({ server: server.name, message }));
    context.out(JSON.stringify({ accepted: isAccepted, tools, failed: lost }));
    return;
  }
  const unshown = isShown ? [] : found;
  for (const each of unshown) for (const line of shownChange(each)) context.out(line);
  const count = formatCount(found.length, 'tool');
  if (found.length > 0) context.note(isAccepted ? `Accepted ${count}.` : `Not accepted: ${count}.`);
  else if (failed.length === 0) context.note('Nothing to accept: no tool is new or has changed.');
  const others = answered.filter((name) => !found.some(({ server }) => server.name === name));
  if (failed.length > 0 && others.length > 0) {
    context.note(`MCP servers that answered, with nothing to accept: ${others.join(', ')}.`);
  }
  for (const { message } of failed)
    context.note(`error: ${printable(runnableText(context, message))}`);
}

/** Returns the lines that show a tool's name and how it differs from its accepted form. */
function shownChange({ server, used, change }: Unaccepted): readonly string[] {
  const { listed, definition } = used;
  const title = `${server.name} ${printable(listed.name)} (${listed.hash.slice(0, 16)})`;
  const nothing = { ...definition, description: '', parameters: {} };
  const before = change?.before ?? nothing;
  const kind =
    change === null
      ? 'new'
      : change.before === null
        ? 'changed, its accepted form is lost'
        : 'changed';
  return [
    `${title}: ${kind}`,
    ...printable(describeToolChange(before, definition, Infinity)).split('\n'),
  ];
}
