import { learnSecrets } from '../secrets/known.js';
import type { Environment } from '../secrets/environment.js';
import type { McpServer } from './mcp-server.js';

export type { Environment };

/** The variables of the worker's environment that a server gets, by name. */
export type ServerEnvironment = ReadonlyMap<string, string>;

/**
 * Returns the variables that a server gets, and registers their values as secrets, so none leaves
 * the worker. Throws a `WorkerFaultError` if the worker's environment lacks one.
 */
export function serverEnvironment(server: McpServer, env: Environment): ServerEnvironment {
  const names = serverVariables(server);
  const missing = names.find((name) => !env[name]);
  if (missing !== undefined) {
    throw new WorkerFaultError(
      `MCP server "${server.name}" needs ${missing}, which this worker's environment does not have; set it`,
    );
  }
  learnSecrets({ env, names });
  return new Map(names.map((name) => [name, env[name] ?? '']));
}

/** The worker itself lacks a variable that a server needs, so no retry helps. */
export class WorkerFaultError extends Error {
  override readonly name = 'WorkerFaultError';
}

/** Returns the names of the variables that a server gets. */
export function serverVariables(server: McpServer): readonly string[] {
  if (server.transport === 'stdio') return server.env ?? [];
  const { authEnv, headersEnv = {} } = server;
  return [...(authEnv === undefined ? [] : [authEnv]), ...Object.values(headersEnv)];
}
