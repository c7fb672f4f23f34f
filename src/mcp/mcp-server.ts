import type { Effect } from '../core/definition/definition.js';
import { assertServerOptions } from './server-options.js';

interface CommonOptions {
  /** Letters, digits, `_` and `-`, at most 32; its tools are `<name>__<tool>` to the model. */
  readonly name: string;
  /** Tools that the agent gets, by the server's own names; default: all. */
  readonly allowTools?: readonly string[];
  /** Tools that the agent does not get, whatever `allowTools` says. */
  readonly denyTools?: readonly string[];
  /**
   * What tools do to the world, by the server's own names; every other one is `once`. What the server
   * itself says of a tool can make this stricter, never looser.
   */
  readonly effects?: Readonly<Record<string, Effect>>;
  /** Milliseconds one call may take; default 120,000. */
  readonly timeout?: number;
  /** Milliseconds the server may take to start or to answer the first time; default 30,000. */
  readonly connectTimeout?: number;
  /** Where the server cannot be had: runs fail at their start (`strict`, default), or do without it. */
  readonly startup?: 'strict' | 'best_effort';
}

/** A server that the worker starts and talks to over its standard streams. */
export interface StdioServerOptions extends CommonOptions {
  readonly transport: 'stdio';
  readonly command: string;
  readonly args?: readonly string[];
  /**
   * Names of the worker's environment variables that the child gets. Beside them it has only what
   * every program needs: PATH, HOME, LOGNAME, SHELL, TERM, USER.
   */
  readonly env?: readonly string[];
  /** Where it runs; default: where the worker does. */
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

/** A server as `mcpServer` made it: checked, defaults filled in. Holds names of secrets, never one. */
export type McpServer = Policy &
  (Omit<StdioServerOptions, Filled> | Omit<HttpServerOptions, Filled>);

const TIMEOUT_MS = 120_000;
const CONNECT_MS = 30_000;

/**
 * An MCP server whose tools an agent gets. Nothing is started here: workers connect when a run needs
 * it. Throws when the definition cannot work, with the value at fault and the cure.
 */
export function mcpServer(options: McpServerOptions): McpServer {
  assertServerOptions(options);
  const { allowTools, denyTools, effects, timeout, connectTimeout, startup, ...place } = options;
  return Object.freeze({
    ...place,
    allowTools: allowTools ?? null,
    denyTools: denyTools ?? [],
    effects: effects ?? {},
    timeoutMs: timeout ?? TIMEOUT_MS,
    connectMs: connectTimeout ?? CONNECT_MS,
    startup: startup ?? 'strict',
  });
}
