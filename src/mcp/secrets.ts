import type { McpServer } from './mcp-server.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variables of a worker's environment that a server is handed, by name. */
export interface Handed {
  readonly values: ReadonlyMap<string, string>;
  /** Hides their values in a text that leaves the worker. */
  readonly hide: (text: string) => string;
}

/** Shorter values are words such as `true`; hiding them would garble ordinary texts. */
const SHORTEST_SECRET = 6;

/** Throws, with the name, where the worker lacks one. */
export function handedTo(server: McpServer, env: Environment): Handed {
  const names = namesOf(server);
  const missing = names.find((name) => !env[name]);
  if (missing !== undefined) {
    throw new WorkerFaultError(
      `MCP server "${server.name}" is to be given ${missing}, which this worker's environment does not have; set it`,
    );
  }
  const values = new Map(names.map((name) => [name, env[name] ?? '']));
  const secrets = [...values].filter(([, value]) => value.trim().length >= SHORTEST_SECRET);
  return {
    values,
    hide: (text) =>
      secrets.reduce((rest, [name, value]) => {
        const forms = [value, value.trim(), JSON.stringify(value).slice(1, -1)];
        return forms.reduce((each, form) => each.replaceAll(form, () => `[hidden ${name}]`), rest);
      }, text),
  };
}

/** No other attempt helps: the worker itself lacks what a server needs. */
export class WorkerFaultError extends Error {
  override readonly name = 'WorkerFaultError';
}

function namesOf(server: McpServer): readonly string[] {
  if (server.transport === 'stdio') return server.env ?? [];
  const { authEnv, headersEnv = {} } = server;
  return [...(authEnv === undefined ? [] : [authEnv]), ...Object.values(headersEnv)];
}
