import type { Effect } from '../core/definition/definition.js';
import { toMs, type Duration } from '../core/text/duration.js';
import { assertServerOptions } from './server-options.js';

interface CommonOptions {
  /** Letters, digits, `_`, and `-`, at most 32; the model sees its tools as `<name>__<tool>`. */
  readonly name: string;
  /** Tools that the agent gets, by the server's own names; default: all. */
  readonly allowTools?: readonly string[];
  /** Tools that the agent does not get, whatever `allowTools` says. */
  readonly denyTools?: readonly string[];
  /**
   * The side effects of tools by the server's own names; the default is `once`. Hints of the server can
   * make an effect stricter, never looser.
   */
  readonly effects?: Readonly<Record<string, Effect>>;
  /** How long one call may take. A duration: ms, or words such as '2 minutes', which is the default. */
  readonly timeout?: Duration;
  /**
   * How long the server may take to start and to answer first. A duration: ms, or words such as '30 seconds',
   * which is the default.
   */
  readonly connectTimeout?: Duration;
  /** If the server is unavailable: runs fail at their start (`strict`, default), or run without it. */
  readonly startup?: 'strict' | 'best_effort';
}

/** A server that the worker starts and uses over its standard streams. */
export interface StdioServerOptions extends CommonOptions {
  readonly transport: 'stdio';
  readonly command: string;
  readonly args?: readonly string[];
  /**
   * Names of the worker's environment variables that the child gets. Beside them, it gets only PATH,
   * HOME, LOGNAME, SHELL, TERM, and USER.
   */
  readonly env?: readonly string[];
  /** Its working directory; default: the worker's. */
  readonly cwd?: string;
}

/** A server that runs elsewhere, over streamable HTTP. */
export interface HttpServerOptions extends CommonOptions {
  readonly transport: 'http';
  readonly url: string;
  /** The worker's environment variable that holds the bearer token. */
  readonly authEnv?: string;
  /** Further headers, each by the environment variable that holds its value. */
  readonly headersEnv?: Readonly<Record<string, string>>;
}

/** What an author passes to `mcpServer`. */
export type McpServerOptions = StdioServerOptions | HttpServerOptions;

type Filled =
  'allowTools' | 'denyTools' | 'effects' | 'timeout' | 'connectTimeout' | 'startup' | 'name';

interface Policy {
  readonly name: string;
  /** Null: all. */
  readonly allowTools: readonly string[] | null;
  readonly denyTools: readonly string[];
  readonly effects: Readonly<Record<string, Effect>>;
  readonly timeoutMs: number;
  readonly connectMs: number;
  readonly startup: 'strict' | 'best_effort';
}

/** A server made by `mcpServer`: checked, with defaults filled in. It has names of secrets, never values. */
export type McpServer = Policy &
  (Omit<StdioServerOptions, Filled> | Omit<HttpServerOptions, Filled>);

const TIMEOUT_MS = 120_000;
const CONNECT_MS = 30_000;

/**
 * Defines an MCP server whose tools an agent gets. It starts nothing: workers connect when a run needs the
 * server. Throws an `InputError` if the definition cannot work, with a line for each fault.
 *
 * @example
 * ```ts
 * import { defineAgent, mcpServer } from 'perdure';
 *
 * const files = mcpServer({
 *   name: 'files',
 *   transport: 'stdio',
 *   command: 'npx',
 *   args: ['@modelcontextprotocol/server-filesystem', '.'],
 *   effects: { read_file: 'read', list_directory: 'read' },
 * });
 *
 * export const reader = defineAgent({ name: 'reader', instructions: 'Answer.', mcp: [files] });
 * ```
 */
export function mcpServer(options: McpServerOptions): McpServer {
  assertServerOptions(options);
  const { allowTools, denyTools, effects, timeout, connectTimeout, startup, ...place } = options;
  return Object.freeze({
    ...place,
    allowTools: allowTools ?? null,
    denyTools: denyTools ?? [],
    effects: effects ?? {},
    timeoutMs: toMs(timeout ?? TIMEOUT_MS),
    connectMs: toMs(connectTimeout ?? CONNECT_MS),
    startup: startup ?? 'strict',
  });
}
