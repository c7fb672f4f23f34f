import { quoteLargeIntegers } from '../core/text/json.js';
import { ChildProcess } from 'node:child_process';
import type { JSONRPCMessage, ReadBuffer, Transport } from '@modelcontextprotocol/client';
import type { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { show } from '../core/text/text.js';
import { redactMessage } from '../secrets/redact.js';
import { cappedFetch } from './capped-fetch.js';
import {
  type FindRequest,
  guardTransport,
  isAnswer,
  type TransportGuard,
  MAX_MESSAGE_BYTES,
  mcpTextProblem,
  TOO_LONG,
  lenientMessage,
} from './wire-messages.js';
import type { McpServer, HttpServerOptions, StdioServerOptions } from './mcp-server.js';

/** A transport to a server, with operations that the protocol itself lacks. */
export interface OpenTransport {
  readonly transport: Transport;
  /** Returns the end of a child's standard error without secrets; empty for servers over HTTP. */
  stderrTail(): string;
  /** Returns the beginning of what a child has written to its standard output before any message; else empty. */
  noise(): string;
  /** Returns how the server has exceeded the limits and so ended the connection, or null. */
  breach(): string | null;
  /** Ends the session that the server holds, if it holds one. */
  endSession(): Promise<void>;
}

const STDERR_CHARACTERS = 1_000;
const NOISE_CHARACTERS = 300;
/** More characters are kept than shown, so no secret is cut before it is redacted. */
const KEPT_CHARACTERS = 16_000;

/**
 * Opens the transport of a server; `values` are the environment variables that it gets. `onNoise` gets what a
 * child has written to its standard output beside its messages, when it has sent one.
 */
export async function openTransport(
  server: McpServer,
  values: ReadonlyMap<string, string>,
  onNoise: (text: string) => void,
): Promise<OpenTransport> {
  return server.transport === 'stdio'
    ? await openStdio(server, values, onNoise)
    : await openHttp(server, values);
}

/**
 * Starts a server as a child process. Only this process writes to its standard input. When this
 * process ends for any reason, the input also ends, and with it every MCP server.
 */
async function openStdio(
  {
    command,
    args = [],
    cwd,
    protocol,
  }: Pick<StdioServerOptions, 'command' | 'args' | 'cwd' | 'protocol'>,
  values: ReadonlyMap<string, string>,
  onNoise: (text: string) => void,
): Promise<OpenTransport> {
  const { StdioClientTransport: Stdio } = await import('@modelcontextprotocol/client/stdio');
  // For the SDK's own class, the client asks for the protocol in a further process, whose standard error it
  // ignores. With one protocol, the first process answers as well.
  const Transport = protocol === undefined ? Stdio : class extends Stdio {};
  const transport = new Transport({
    command,
    args: [...args],
    env: Object.fromEntries(values),
    stderr: 'pipe',
    maxBufferSize: MAX_MESSAGE_BYTES,
    ...(cwd !== undefined && { cwd }),
  });
  const { parseJSONRPCMessage } = await import('@modelcontextprotocol/client');
  const guard = guardTransport(transport);
  const { noise, ...buffer } = messageBuffer(parseJSONRPCMessage, guard, onNoise);
  Reflect.set(transport, '_readBuffer', buffer);
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    // Each large call in progress adds a listener until the child has read it.
    const child: unknown = Reflect.get(transport, '_process');
    if (child instanceof ChildProcess) child.stdin?.setMaxListeners(0);
  };
  return {
    transport,
    stderrTail: collectStderr(transport),
    noise,
    breach: guard.reason,
    endSession: async () => undefined,
  };
}

/** Replaces the SDK's buffer, which copies a long line again with each part of it. */
function messageBuffer(
  read: (message: unknown) => JSONRPCMessage,
  guard: TransportGuard,
  onNoise: (text: string) => void,
): Pick<ReadBuffer, 'append' | 'readMessage' | 'clear'> & Pick<OpenTransport, 'noise'> {
  const lines = createLineBuffer();
  const noise = createNoise(onNoise);
  const unfinished = (): string => {
    const rest = lines.rest();
    return MESSAGE.test(rest) || BEGIN.test(rest) ? '' : rest;
  };
  /** The rest of a line that holds several messages. */
  let batch: unknown[] = [];
  let line: string | null = null;
  const nextMessage = (): { readonly message: unknown } | null => {
    if (batch.length > 0) return { message: batch.shift() };
    line = lines.next();
    if (line === null) return null;
    const { before, value } = parseLine(line, guard.find);
    noise.add(before);
    if (!Array.isArray(value)) return { message: value };
    batch = value;
    return nextMessage();
  };
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
      for (;;) {
        try {
          const next = nextMessage();
          const message = next && read(lenientMessage(next.message, guard.find));
          if (message !== null) noise.end();
          return message;
        } catch (error) {
          noise.add(line ?? '');
          guard.unreadable();
          if (guard.reason() !== null) lines.clear();
          // Some servers also write other text to their standard output.
          if (!(error instanceof SyntaxError)) throw error;
        }
      }
    },
    clear() {
      noise.add(unfinished());
      lines.clear();
    },
    noise: () => noise.beforeMessages(unfinished()),
  };
}

const parse = (text: string): unknown => JSON.parse(quoteLargeIntegers(text));

/** A line that begins as a message, or as a list of them. */
const MESSAGE = /^\s*(?:\{|\[\s*\{)/;
/** Where a message begins on a line that begins with other text. */
const BEGIN = /\{\s*"(?:jsonrpc|id|result|error)"/;

/**
 * Parses a line. A program may have written text without a line end before a message, such as a banner, a byte
 * order mark, or progress: if an answer that is waited for follows, `value` is that, and `before` the text.
 * Throws a `SyntaxError` for any other line that is not JSON.
 */
function parseLine(line: string, find: FindRequest): { before: string; value: unknown } {
  try {
    return { before: '', value: parse(line) };
  } catch (error) {
    const begin = line.search(BEGIN);
    if (begin < 0) throw error;
    const value = parse(line.slice(begin));
    // The log of a server may quote the messages that it gets.
    if (!isAnswer(value) || find(value['id']) === null) throw error;
    return { before: line.slice(0, begin), value };
  }
}

/** Returns the words about a server that writes this to its standard output, and what its author can do. */
export function noiseFault(text: string): { readonly what: string; readonly fix: string } {
  return {
    what: `it writes to its standard output what is not the protocol (${show(text)}), which is ignored`,
    fix: 'let it write such text to its standard error',
  };
}

/** What a program writes to its standard output beside its messages. */
interface Noise {
  add(text: string): void;
  /** The program has sent a message. */
  end(): void;
  /** Returns what was written while no message had been sent; empty after it. `rest`: a line without its end. */
  beforeMessages(rest: string): string;
}

function createNoise(onNoise: (text: string) => void): Noise {
  let text = '';
  let hasMessages = false;
  const shown = (rest = ''): string => oneLineOf(text + rest).slice(0, NOISE_CHARACTERS);
  return {
    add(more) {
      if (more !== '' && text.length < NOISE_CHARACTERS)
        text += `${more.slice(0, KEPT_CHARACTERS)}\n`;
    },
    end() {
      hasMessages = true;
      const noise = shown();
      text = '';
      if (noise !== '') onNoise(noise);
    },
    beforeMessages: (rest) => (hasMessages ? '' : shown(rest)),
  };
}

/** Returns foreign text in one line, without secrets and hidden characters. */
function oneLineOf(text: string): string {
  return redactMessage(text)
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
}

function collectStderr({ stderr }: StdioClientTransport): () => string {
  let text = '';
  stderr?.on('data', (chunk: Buffer) => {
    text = (text + chunk.subarray(-4 * KEPT_CHARACTERS).toString()).slice(-KEPT_CHARACTERS);
  });
  return () =>
    toldBy(redactMessage(text))
      .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
      .trim();
}

const ERROR_LINE = /^(?:Uncaught )?[\w.]*(?:Error|Exception)(?: \[\w+\])?:/;

/**
 * Returns what a program's standard error says last: from its last error on, without the warnings and the
 * source before it, or else its end.
 */
export function toldBy(text: string): string {
  const lines = text.split('\n');
  const last = lines.findLastIndex((line) => ERROR_LINE.test(line));
  if (last < 0) return text.slice(-STDERR_CHARACTERS);
  return lines.slice(last).join('\n').slice(0, STDERR_CHARACTERS);
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
  const fetchCapped = cappedFetch({
    onBreach: (reason) => guard.breach(reason),
    find: (id) => guard.find(id),
  });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: fetchCapped,
  });
  const guard = guardTransport(transport);
  return {
    transport,
    stderrTail: () => '',
    noise: () => '',
    breach: guard.reason,
    endSession: () => transport.terminateSession(),
  };
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** The lines of a stream of bytes. */
interface LineBuffer {
  append(chunk: Buffer): void;
  /** Returns the next whole line without its end, or null if there is none yet. */
  next(): string | null;
  /** Returns the beginning of the line whose end has not arrived; empty if there is none. */
  rest(): string;
  clear(): void;
}

/**
 * Splits a stream of bytes into lines, in time proportional to its length. Throws an `Error` at a
 * line, finished or not, that is too long or would become too many values.
 */
export function createLineBuffer(): LineBuffer {
  let lines: string[] = [];
  let taken = 0;
  let open: Buffer[] = [];
  let openBytes = 0;

  const close = (end: Buffer): void => {
    const line = Buffer.concat([...open, end]);
    [open, openBytes] = [[], 0];
    const problem = mcpTextProblem(line);
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
      if (openBytes > MAX_MESSAGE_BYTES) throw new Error(TOO_LONG);
    },
    next() {
      const line = lines[taken];
      if (line === undefined) [lines, taken] = [[], 0];
      else taken += 1;
      return line ?? null;
    },
    rest: () => Buffer.concat(open, Math.min(openBytes, KEPT_CHARACTERS)).toString('utf8'),
    clear() {
      [lines, taken, open, openBytes] = [[], 0, [], 0];
    },
  };
}
