import type { Effect } from '../core/definition/tool-definition.js';
import { toMs } from '../core/text/duration.js';
import {
  assertServerOptions,
  type HttpServerOptions,
  type McpServerOptions,
  type StdioServerOptions,
} from './server-options.js';

type Filled =
  | 'allowTools'
  | 'denyTools'
  | 'effects'
  | 'timeout'
  | 'connectTimeout'
  | 'startup'
  | 'trust'
  | 'name';

interface Policy {
  readonly name: string;
  /** Null: all. */
  readonly allowTools: readonly string[] | null;
  readonly denyTools: readonly string[];
  readonly effects: Readonly<Record<string, Effect>>;
  readonly timeoutMs: number;
  readonly connectMs: number;
  readonly startup: 'strict' | 'best_effort';
  readonly trust: 'first_use' | 'accepted';
}

/**
 * A server made by `mcpServer`: checked, with defaults filled in. It contains names of secrets,
 * never values.
 */
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
  const { allowTools, denyTools, effects, timeout, connectTimeout, startup, trust, ...place } =
    options;
  return Object.freeze({
    ...place,
    allowTools: allowTools ?? null,
    denyTools: denyTools ?? [],
    effects: effects ?? {},
    timeoutMs: toMs(timeout ?? TIMEOUT_MS),
    connectMs: toMs(connectTimeout ?? CONNECT_MS),
    startup: startup ?? 'strict',
    trust: trust ?? 'first_use',
  });
}
