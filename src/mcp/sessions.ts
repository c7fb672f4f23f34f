import { canonicalJson, type Json } from '../core/json.js';
import type { McpServer } from './mcp-server.js';
import type { Environment } from './handed.js';
import { createSession, type McpSession } from './session.js';

/** The MCP servers that a worker talks to. */
export interface McpSessions {
  /** One for each server and its settings, whoever asks. */
  of(server: McpServer): McpSession;
  /** Ends all connections, and the processes that were started for them. Never rejects. */
  close(): Promise<void>;
}

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

/** By what decides how the server is reached: agents that have it with other tools share it. */
function keyOf(server: McpServer): string {
  const {
    allowTools: _,
    denyTools: __,
    effects: ___,
    timeoutMs: ____,
    startup: _____,
    ...place
  } = server;
  const json: Json = JSON.parse(JSON.stringify(place));
  return canonicalJson(json);
}
