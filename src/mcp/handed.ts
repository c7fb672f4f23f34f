import { learnSecrets } from '../secrets/known.js';
import type { Environment } from '../secrets/environment.js';
import type { McpServer } from './mcp-server.js';

export type { Environment };

/** The variables of a worker's environment that a server is handed, by name. */
export type Handed = ReadonlyMap<string, string>;

/** Throws, with the name, where the worker lacks one. From then on, none of the values leaves the worker. */
export function handedTo(server: McpServer, env: Environment): Handed {
  const names = handedNames(server);
  const missing = names.find((name) => !env[name]);
  if (missing !== undefined) {
    throw new WorkerFaultError(
      `MCP server "${server.name}" is to be given ${missing}, which this worker's environment does not have; set it`,
    );
  }
  learnSecrets({ env, names });
  return new Map(names.map((name) => [name, env[name] ?? '']));
}

/** No other attempt helps: the worker itself lacks what a server needs. */
export class WorkerFaultError extends Error {
  override readonly name = 'WorkerFaultError';
}

/** The names of the variables that a server is handed. */
export function handedNames(server: McpServer): readonly string[] {
  if (server.transport === 'stdio') return server.env ?? [];
  const { authEnv, headersEnv = {} } = server;
  return [...(authEnv === undefined ? [] : [authEnv]), ...Object.values(headersEnv)];
}
