import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type {
  Client,
  ClientOptions,
  JsonSchemaValidator,
  VersionNegotiationMode,
} from '@modelcontextprotocol/client';
import { shellWord, show } from '../core/text/text.js';
import { type Environment, learnSecrets } from '../secrets/known.js';
import { ownVersion } from '../storage/files.js';
import { CallFault } from '../tools/arguments/check-arguments.js';
import { ToolError } from '../tools/errors.js';
import { normalizeError } from '../tools/result/plain.js';
import type { McpServer } from './mcp-server.js';
import { type OpenTransport, openTransport } from './transport.js';
import { STREAM_ENDED } from './wire-messages.js';

/** Codes of requests that never reached a server: nothing listens there, or the host is unknown. */
const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** The SDK's codes for a server that asks for input instead of executing the call. */
const INPUT_WANTED: readonly string[] = ['INPUT_REQUIRED_ROUNDS_EXCEEDED'];
/**
 * HTTP statuses of servers that did not process the request: it moved, it has a wrong form, or there
 * are too many. A session that has ended (404) may have ended during the call: one that ended
 * before is found when the tools are listed, right before each call that may change something.
 */
const TURNED_AWAY = [
  301, 307, 308, 400, 405, 406, 411, 413, 414, 415, 417, 421, 426, 428, 429, 431,
];
/** How servers report that a tool was executed and its result did not fit the tool's own schema. */
const RESULT_REFUSED =
  /^(?:MCP error -\d{1,9}: )?(?:output validation error|tool \S{1,200} has an output schema but|invalid structured (?:content|output)|structured content does not match)/i;
const NOT_SENT: readonly string[] = ['NOT_CONNECTED', 'CAPABILITY_NOT_SUPPORTED'];

/**
 * Converts the error of a call according to its side effect: to a `ToolError` if the server
 * answered, or to a `CallFault` if nothing was sent or no answer arrived.
 */
export async function toCallFault(error: unknown, server: McpServer): Promise<Error> {
  const { ProtocolError, SdkError, SdkHttpError } = await import('@modelcontextprotocol/client');
  const { message } = normalizeError(error);
  const text = `MCP server "${server.name}": ${message}`;
  if (ProtocolError.isInstance(error)) {
    const isUnanswered = error.code === STREAM_ENDED || isRefusedResult(message);
    return isUnanswered ? new CallFault('unanswered', text) : new ToolError(text);
  }
  if (SdkHttpError.isInstance(error)) {
    const { status } = error;
    if (isRefusedKey(status)) return new CallFault('refused', refusedKey(server, status));
    const answer = `MCP server "${server.name}" answers with HTTP ${status}: ${message}`;
    return new CallFault(TURNED_AWAY.includes(status) ? 'unsent' : 'unanswered', answer);
  }
  if (SdkError.isInstance(error)) {
    if (INPUT_WANTED.includes(error.code)) return new ToolError(text);
    return new CallFault(NOT_SENT.includes(error.code) ? 'unsent' : 'unanswered', text);
  }
  const isUnsent = UNREACHABLE.has(causeCode(error)) || message === 'Not connected';
  return new CallFault(isUnsent ? 'unsent' : 'unanswered', text);
}

/**
 * Returns whether a server's error says that it has executed the call and then refused the tool's
 * result. Whether the call had its effect is then unknown, or even certain.
 */
export function isRefusedResult(message: string): boolean {
  return RESULT_REFUSED.test(message.slice(0, 500));
}

/** Describes to people what is wrong with the key, and which variable holds it. */
function refusedKey(server: McpServer, status: number): string {
  return `MCP server "${server.name}" refuses (HTTP ${status}); ${keyFix(server)}`;
}

function keyFix(server: McpServer): string {
  const variable = server.transport === 'http' ? server.authEnv : undefined;
  return variable === undefined
    ? 'it needs a key: name the variable that holds it with `authEnv`'
    : `check the key in ${variable}`;
}

/** Returns whether an HTTP status means that the key is missing, wrong, or not sufficient. */
function isRefusedKey(status: unknown): status is 401 | 403 {
  return status === 401 || status === 403;
}

/** Returns the system's code among the causes of `fetch failed`, or an empty text. */
function causeCode(error: unknown): string {
  let current: unknown = error;
  for (let depth = 0; depth < 4 && typeof current === 'object' && current !== null; depth += 1) {
    // A route that is lost while an answer is read tells nothing about the request.
    if ('syscall' in current && current.syscall === 'read') return '';
    if ('code' in current && typeof current.code === 'string') return current.code;
    current = 'cause' in current ? current.cause : undefined;
  }
  return '';
}

export type { Environment };

/** The variables of the worker's environment that a server gets, by name. */
type ServerEnvironment = ReadonlyMap<string, string>;

/**
 * Returns the variables that a server gets, and registers their values as secrets, so none leaves
 * the worker. Throws a `WorkerFaultError` if the worker's environment lacks one.
 */
export function serverEnvironment(server: McpServer, env: Environment): ServerEnvironment {
  const names = serverVariables(server);
  const missing = names.find((name) => !env[name]);
  if (missing !== undefined) {
    throw new MissingVariableError(server.name, missing);
  }
  learnSecrets({ env, names });
  return new Map(names.map((name) => [name, env[name] ?? '']));
}

/** A server cannot be used, for a reason with a known fix, which its message ends with. */
class KnownFaultError extends Error {
  readonly what: string;
  readonly fix: string;

  constructor(what: string, fix: string) {
    super(`${what}; ${fix}`);
    this.what = what;
    this.fix = fix;
  }
}

/** The worker itself lacks something that a server needs, so no retry helps. */
export class WorkerFaultError extends KnownFaultError {
  override readonly name = 'WorkerFaultError';

  /** Returns the message for a reader who may not know which worker executes the run. */
  on(worker: string): string {
    return `${worker}: ${this.message}`;
  }
}

/** The environment of this process lacks a variable that a server needs. */
class MissingVariableError extends WorkerFaultError {
  readonly #needs: string;

  constructor(server: string, variable: string) {
    const needs = `MCP server "${server}" needs ${variable}`;
    super(`${needs}, which the environment of this command does not have`, `set ${variable}`);
    this.#needs = needs;
  }

  override on(worker: string): string {
    return `${this.#needs}, which the environment of ${worker} does not have; set it there, and restart the worker`;
  }
}

/** Returns the names of the variables that a server gets. */
export function serverVariables(server: McpServer): readonly string[] {
  if (server.transport === 'stdio') return server.env ?? [];
  const { authEnv, headersEnv = {} } = server;
  return [...(authEnv === undefined ? [] : [authEnv]), ...Object.values(headersEnv)];
}

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
interface ConnectionEvents {
  /** The server has closed the connection or has died. */
  readonly onLost: () => void;
  /** The server reports that its tools have changed. */
  readonly onToolsChanged: () => void;
  /** The server has written this to its standard output, although it is not a message of the protocol. */
  readonly onNoise: (text: string) => void;
  /** A transport is open; `noise` returns what was written to the standard output before any message. */
  readonly onOpen: (noise: () => string) => void;
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
  const [first, second] = modesOf(server);
  try {
    return await attempt(server, { handed, events, mode: first });
  } catch (error) {
    if (second === undefined || !(await isRefusal(error))) throw unreachable(server, error);
  }
  return await attempt(server, { handed, events, mode: second }).catch((error: unknown) => {
    throw unreachable(server, error);
  });
}

function modesOf(server: McpServer): readonly [VersionNegotiationMode, VersionNegotiationMode?] {
  if (server.transport === 'http') return ['auto'];
  return server.protocol === undefined ? ['legacy', 'auto'] : [{ pin: server.protocol }];
}

async function attempt(
  server: McpServer,
  how: { handed: ServerEnvironment; events: ConnectionEvents; mode: VersionNegotiationMode },
): Promise<McpConnection> {
  const { Client } = await import('@modelcontextprotocol/client');
  const open = await openTransport(server, how.handed, how.events.onNoise);
  how.events.onOpen(() => open.noise());
  const client = new Client(
    { name: 'perdure', version: ownVersion() },
    {
      versionNegotiation: { mode: how.mode },
      jsonSchemaValidator: UNCHECKED,
      capabilities: { elicitation: { form: {}, url: {} } },
      inputRequired: { autoFulfill: false },
    },
  );
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK's client is not an event target
  client.onclose = how.events.onLost;
  // A fault of the transport either rejects its request or ends in `onclose`.
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the same
  client.onerror = () => undefined;
  client.setNotificationHandler('notifications/tools/list_changed', how.events.onToolsChanged);
  const began = performance.now();
  try {
    await client.connect(open.transport, {
      timeout: server.connectMs,
      signal: how.events.signal,
    });
  } catch (error) {
    await client.close().catch(() => undefined);
    await open.transport.close().catch(() => undefined);
    throw withStderr(error, open, performance.now() - began >= server.connectMs);
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
 * Adds why the connection failed: a breach of the limits, or what the child has written. `isLate`: its time for
 * the start is over.
 */
function withStderr(error: unknown, open: OpenTransport, isLate: boolean): unknown {
  const breach = open.breach();
  if (breach !== null) return new Error(breach, { cause: error });
  const { message } = normalizeError(error);
  const [tail, noise] = [open.stderrTail(), open.noise()];
  const wrote = tail === '' ? '' : `; it wrote: ${tail}`;
  if (noise !== '') {
    const why = `${message}; ${onlyNoise(noise)}${wrote}`;
    return isLate ? new OnlyNoiseError(why, { cause: error }) : new Error(why, { cause: error });
  }
  if (tail === '') return error;
  return new Error(`${message}${wrote}`, { cause: error });
}

/** Returns the words about a program that has written this to its standard output, and no message. */
export function onlyNoise(noise: string): string {
  return `it writes to its standard output what is not the protocol (${show(noise)}), and no message`;
}

/**
 * Until the time for its start was over, a program has written to its standard output, but no message. It may be
 * no MCP server at all, or one that begins with a banner and starts slowly.
 */
export class NoProtocolError extends KnownFaultError {}

/** The same, before the server's name and the fix are known. */
class OnlyNoiseError extends Error {}

/** What the SDK puts before the reason of a connection that failed. */
const INTERNALS = /^(?:Version negotiation probe failed: )?(?:fetch failed: )?(?=.)/;

/** Returns whether the server has answered the handshake with a refusal. */
async function isRefusal(error: unknown): Promise<boolean> {
  const { ProtocolError } = await import('@modelcontextprotocol/client');
  return [error, error instanceof Error ? error.cause : null].some((each) =>
    ProtocolError.isInstance(each),
  );
}

function unreachable(server: McpServer, error: unknown): Error {
  const where = server.transport === 'stdio' ? server.command : new URL(server.url).origin;
  const message = normalizeError(error).message.replace(INTERNALS, '');
  const text = `MCP server "${server.name}" (${where}) cannot be reached: ${message}`;
  if (error instanceof OnlyNoiseError) {
    return new NoProtocolError(text, 'check `command` and `args`');
  }
  if (server.transport === 'stdio') {
    if (fieldOf(error, 'code') !== 'ENOENT') return new Error(text);
    const [program = '', ...args] = server.command.trim().split(/\s+/);
    if (args.length > 0 && !program.includes('/') && !existsSync(server.command)) {
      const split = `command: ${show(program)}, args: ${JSON.stringify(args)}`;
      return new WorkerFaultError(text, `arguments go to \`args\`: ${split}`);
    }
    return new WorkerFaultError(
      text,
      'check that the command is installed on this worker and that `cwd` exists',
    );
  }
  const status = fieldOf(error, 'status');
  if (!isRefusedKey(status)) return new Error(text);
  return new CallFault('refused', refusedKey(server, status));
}

/** Returns why a server cannot be used, and what to do about it. */
export function knownFault(
  server: McpServer,
  error: unknown,
): { readonly what: string; readonly fix: string } {
  if (error instanceof KnownFaultError) return error;
  const { message } = normalizeError(error);
  if (error instanceof CallFault && error.kind === 'refused') {
    const fix = keyFix(server);
    return { what: message.replace(`; ${fix}`, ''), fix };
  }
  if (server.transport === 'http') {
    const fix = `check that the server is running, and its \`url\`: ${new URL(server.url).origin}`;
    return { what: message, fix };
  }
  const { cwd, command, args = [] } = server;
  const folder = cwd === undefined ? '' : `cd ${shellWord(cwd)} && `;
  const program = [command, ...args].map(shellWord).join(' ');
  const fix = `run it alone to see why it does not answer: ${folder}${program}`;
  return { what: message, fix };
}

function fieldOf(error: unknown, field: 'code' | 'status'): unknown {
  if (typeof error !== 'object' || error === null) return undefined;
  return Reflect.get(error, field);
}
