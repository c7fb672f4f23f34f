import { canonicalJson, type Json } from '../core/json.js';
import type { McpServer } from './mcp-server.js';
import type { Environment } from './server-environment.js';
import { createSession, type McpSession } from './session.js';

/** The sessions of a worker with MCP servers. */
export interface McpSessions {
  /** Returns the session of a server; agents with the same server and settings share one. */
  of(server: McpServer): McpSession;
  /** Closes all connections and ends the processes that were started for them. Never rejects. */
  close(): Promise<void>;
}

/** Creates the sessions of a worker; `env` is its environment. */
export function createSessions(env: Environment): McpSessions {
  const sessions = new Map<string, McpSession>();
  return {
    of(server) {
      const key = keyOf(server);
      const known = sessions.get(key) ?? createSession(server, env);
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
    ...place
  } = server;
  const json: Json = JSON.parse(JSON.stringify(place));
  return canonicalJson(json);
}
