import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type Json, type JsonObject, canonicalJson, isObject } from '../core/text/json.js';
import type { AnsweredInput } from '../core/run/contract.js';
import { formatDuration } from '../core/text/text.js';
import { CallFault } from '../tools/arguments/check-arguments.js';
import { normalizeError } from '../tools/result/plain.js';
import {
  type Environment,
  type McpConnection,
  connect,
  onlyNoise,
  toCallFault,
} from './connection.js';
import { answerParams } from './input-required.js';
import { type McpListing, type ReadTool, readTool } from './listed-tool.js';
import type { McpServer } from './mcp-server.js';
import { rawResult } from './wire-messages.js';

/** A server's connection, opened on demand and reopened after a fault; at most one is current. */
interface McpLink {
  /**
   * Runs `work` over the connection. If it fails with a `CallFault`, the next use opens a new
   * connection.
   */
  use<T>(work: (connection: McpConnection) => Promise<T>): Promise<T>;
  /** Closes the connection and refuses new ones. Never rejects. */
  close(): Promise<void>;
  /** Returns what the program has written to its standard output, if it has sent no message; else empty. */
  noise(): string;
}

interface Line {
  readonly made: Promise<McpConnection>;
  uses: number;
}

/**
 * The shortest time between a failed connection and the next attempt. Temporal decides on retries.
 */
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 10_000;

/** Creates a link. `onChange` is called when the server's list of tools may have changed. */
function createLink(
  server: McpServer,
  env: Environment,
  { onChange, onNoise }: { onChange: () => void; onNoise: (text: string) => void },
): McpLink {
  let line: Line | null = null;
  let failures = 0;
  let noise: (() => string) | null = null;
  let failed: { readonly error: unknown; readonly until: number } | null = null;
  const ending = new AbortController();
  const { signal } = ending;
  setMaxListeners(0, signal);

  const open = (): Line => {
    if (line !== null) return line;
    if (signal.aborted) throw new CallFault('unsent', 'this worker is shutting down');
    if (failed !== null && performance.now() < failed.until) throw failed.error;
    const opened: Line = {
      uses: 0,
      made: connect(server, env, {
        onLost: () => leave(opened),
        onToolsChanged: onChange,
        onNoise,
        onOpen: (ofOpened) => (noise = ofOpened),
        signal,
      }),
    };
    line = opened;
    opened.made.then(
      () => (failures = 0),
      (error: unknown) => {
        const waitMs = Math.min(FIRST_PAUSE_MS * 2 ** failures, MAX_PAUSE_MS);
        failures += 1;
        failed = { error, until: performance.now() + waitMs };
        leave(opened);
      },
    );
    return opened;
  };

  /**
   * Stops using a connection. If calls still wait for answers on it, the last of them closes it.
   */
  const leave = (old: Line): void => {
    if (line === old) {
      line = null;
      onChange();
    }
    if (old.uses === 0) void closeLine(old);
  };

  return {
    async use(work) {
      const used = open();
      used.uses += 1;
      try {
        return await work(await used.made);
      } catch (error) {
        if (error instanceof CallFault && line === used) leave(used);
        throw error;
      } finally {
        used.uses -= 1;
        if (used.uses === 0 && line !== used) void closeLine(used);
      }
    },
    async close() {
      ending.abort();
      if (line !== null) await closeLine(line);
    },
    noise: () => noise?.() ?? '',
  };
}

async function closeLine({ made }: Line): Promise<void> {
  const connection = await made.catch(() => null);
  await connection?.close();
}

/** A worker's access to one server. */
export interface McpSession {
  /**
   * Returns the server's tools, listed at most `maxAgeMs` ago. Waits at most `waitMs` for a server
   * that is still starting, and then rejects with a `CallFault`; the server continues to start.
   */
  listing(how: { maxAgeMs: number; waitMs?: number }): Promise<McpListing>;
  /**
   * Calls a tool and returns the server's result, which may be any value. Rejects with a
   * `ToolError` if the server refused the call, with a `CallFault` if it gave no readable answer.
   */
  call(tool: string, args: JsonObject, how: CallOptions): Promise<unknown>;
  /** Closes the connection and ends a process that was started for it. Never rejects. */
  close(): Promise<void>;
}

/** Options of one call. */
interface CallOptions {
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
  /** The answers to what the server has asked; absent for a first call. */
  readonly answered?: AnsweredInput;
}

interface Listing extends McpListing {
  /** Time of the monotonic clock in ms: clocks that are set back must not make a list look new. */
  readonly at: number;
}

const LIST_TIMEOUT_MS = 10_000;
/** Maximum pages of a list, and tools in each. */
const MAX_PAGES = 20;
const MAX_TOOLS = 1_000;
/** The code of an error for a method that the server does not have. */
const NO_METHOD = -32_601;
/** Longer than every other limit, because the call's signal ends it. */
const CALL_TIMEOUT_MS = 2_147_000_000;
/** The field by which a server can recognize a repeated call. */
const KEY_FIELD = 'perdure/idempotency-key';

/**
 * Is called once for a server that writes to its standard output what is not a message of the protocol. `text`:
 * what that is, in one line without secrets. It is ignored.
 */
export type OnNoise = (server: McpServer, text: string) => void;

/** Creates the session of one server, which connects on demand. */
export function createSession(server: McpServer, env: Environment, onNoise?: OnNoise): McpSession {
  let known: Promise<Listing> | null = null;
  let isReported = false;
  const link = createLink(server, env, {
    onChange: () => (known = null),
    onNoise: (text) => {
      if (!isReported) onNoise?.(server, text);
      isReported = true;
    },
  });

  const listing = async (maxAgeMs: number): Promise<McpListing> => {
    const before = known && (await known.catch(() => null));
    if (before !== null && performance.now() - before.at <= maxAgeMs) return before;
    const pending = link.use((connection) => list(server, connection));
    known = pending;
    return await pending;
  };
  const inputSchema = async (tool: string): Promise<JsonObject | undefined> => {
    const listed = known && (await known.catch(() => null));
    return listed?.tools.find(({ name }) => name === tool)?.schema;
  };

  return {
    async listing({ maxAgeMs, waitMs }) {
      const tools = listing(maxAgeMs);
      return waitMs === undefined
        ? await tools
        : await within(waitMs, tools, () => late(server, waitMs, link.noise()));
    },
    async call(tool, args, { signal, idempotencyKey, answered }) {
      let isSent = false;
      try {
        return await link.use(async (connection) => {
          const schema = await inputSchema(tool);
          isSent = true;
          const request = {
            name: tool,
            arguments: args,
            ...answerParams(answered),
            _meta: { [KEY_FIELD]: idempotencyKey },
          };
          return await callOver(server, connection, { request, schema, signal });
        });
      } catch (error) {
        if (isSent || error instanceof CallFault) throw error;
        throw new CallFault('unsent', normalizeError(error).message);
      }
    },
    close: () => link.close(),
  };
}

async function list(server: McpServer, connection: McpConnection): Promise<Listing> {
  const at = performance.now();
  try {
    const entries = await listPages(connection);
    return {
      tools: entries.flatMap((entry) => (entry.ok ? [entry.tool] : [])),
      odd: entries.flatMap((entry) => (entry.ok ? [] : [entry.odd])),
      at,
    };
  } catch (error) {
    const fault = await toCallFault(error, server);
    // Regardless of the fault, nothing was executed, and a new connection may help.
    if (fault instanceof CallFault && fault.kind === 'refused') throw fault;
    throw new CallFault('unsent', `its tools cannot be listed: ${fault.message}`);
  }
}

/** Returns the entries of a server's list, each read for itself. Throws if the list has no end. */
async function listPages({ client }: McpConnection): Promise<readonly ReadTool[]> {
  const entries = new Map<string, ReadTool>();
  const cursors = new Set<string | undefined>();
  for (let cursor: string | undefined; ;) {
    const { tools, nextCursor } = pageOf(await listPage(client, cursor));
    if (tools.length > MAX_TOOLS) {
      throw new Error(`it lists ${tools.length} tools at once; at most ${MAX_TOOLS} are read`);
    }
    const before = entries.size;
    for (const [at, tool] of tools.entries()) {
      const entry = readTool(tool, `${cursors.size * MAX_TOOLS + at + 1}`);
      entries.set(entry.key, entry);
    }
    cursors.add(cursor);
    cursor = nextCursor;
    // A server that ignores the cursor repeats its pages.
    const isOver = cursor === undefined || cursors.has(cursor) || entries.size === before;
    if (isOver) return [...entries.values()];
    if (cursors.size >= MAX_PAGES) throw new Error(`its list of tools has over ${MAX_PAGES} pages`);
  }
}

async function listPage(
  client: McpConnection['client'],
  cursor: string | undefined,
): Promise<unknown> {
  const params = cursor === undefined ? {} : { params: { cursor } };
  try {
    const request = { method: 'tools/list', ...params } as const;
    return rawResult(await client.request(request, { timeout: LIST_TIMEOUT_MS }));
  } catch (error) {
    const { ProtocolError } = await import('@modelcontextprotocol/client');
    const hasTools = client.getServerCapabilities()?.tools !== undefined;
    if (hasTools || !ProtocolError.isInstance(error) || error.code !== NO_METHOD) throw error;
    return [];
  }
}

/** Returns the entries of a page, and the cursor of the next one if there is one. */
function pageOf(page: unknown): { tools: readonly unknown[]; nextCursor: string | undefined } {
  if (Array.isArray(page)) return { tools: page, nextCursor: undefined };
  const { tools, nextCursor } = isObject(page) ? page : {};
  if (tools !== undefined && tools !== null && !Array.isArray(tools)) {
    throw new Error('its list of tools is not a list');
  }
  const next = typeof nextCursor === 'number' ? `${nextCursor}` : nextCursor;
  return {
    tools: tools ?? [],
    nextCursor: typeof next === 'string' && next !== '' ? next : undefined,
  };
}

async function callOver(
  server: McpServer,
  { client }: McpConnection,
  call: {
    request: Parameters<McpConnection['client']['callTool']>[0];
    /** The tool's own schema, whose headers the newest protocol repeats in the request. */
    schema: JsonObject | undefined;
    signal: AbortSignal;
  },
): Promise<unknown> {
  const { request, schema, signal } = call;
  const { name } = request;
  const toolDefinition = schema && { name, inputSchema: { ...schema, type: 'object' as const } };
  try {
    const answer = await client.callTool(request, {
      signal,
      timeout: CALL_TIMEOUT_MS,
      allowInputRequired: true,
      ...(toolDefinition && { toolDefinition }),
    });
    return rawResult(answer);
  } catch (error) {
    // An abort on our side is not a fault of the server.
    signal.throwIfAborted();
    throw await toCallFault(error, server);
  }
}

/** Returns the fault of a server that is still starting. `noise`: what it has written instead of a message. */
function late({ name }: McpServer, waitMs: number, noise: string): CallFault {
  const wrote = noise === '' ? '' : `; ${onlyNoise(noise)}`;
  const waited = formatDuration(waitMs, { as: 'exact' });
  return new CallFault('unsent', `MCP server "${name}" has not answered within ${waited}${wrote}`);
}

/** `fault`: returns the error after that time. */
async function within<T>(waitMs: number, work: Promise<T>, fault: () => Error): Promise<T> {
  const over = new AbortController();
  const timeUp = pause(waitMs, undefined, { signal: over.signal }).then(() => {
    throw fault();
  });
  timeUp.catch(() => undefined);
  work.catch(() => undefined);
  try {
    return await Promise.race([work, timeUp]);
  } finally {
    over.abort();
  }
}

/** The sessions of a worker with MCP servers. */
export interface McpSessions {
  /** Returns the session of a server; agents with the same server and settings share one. */
  of(server: McpServer): McpSession;
  /** Closes all connections and ends the processes that were started for them. Never rejects. */
  close(): Promise<void>;
}

/** Creates the sessions of a worker; `env` is its environment. */
export function createSessions(env: Environment, onNoise?: OnNoise): McpSessions {
  const sessions = new Map<string, McpSession>();
  return {
    of(server) {
      const key = keyOf(server);
      const known = sessions.get(key) ?? createSession(server, env, onNoise);
      sessions.set(key, known);
      return known;
    },
    async close() {
      await Promise.all([...sessions.values()].map((session) => session.close()));
    },
  };
}

/** Returns a key of a server's connection settings, without the selection of tools. */
function keyOf(server: McpServer): string {
  const {
    allowTools: _,
    denyTools: __,
    effects: ___,
    timeoutMs: ____,
    startup: _____,
    trust: ______,
    expiresMs: _______,
    ...place
  } = server;
  const json: Json = JSON.parse(JSON.stringify(place));
  return canonicalJson(json);
}
