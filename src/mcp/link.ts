import { setMaxListeners } from 'node:events';
import { CallFault } from '../tools/arguments/call-fault.js';
import { connect, type McpConnection } from './connection.js';
import type { McpServer } from './mcp-server.js';
import type { Environment } from './server-environment.js';

/** A server's connection, opened on demand and reopened after a fault; at most one is current. */
export interface McpLink {
  /**
   * Runs `work` over the connection. If it fails with a `CallFault`, the next use opens a new
   * connection.
   */
  use<T>(work: (connection: McpConnection) => Promise<T>): Promise<T>;
  /** Closes the connection and refuses new ones. Never rejects. */
  close(): Promise<void>;
}

interface Line {
  readonly made: Promise<McpConnection>;
  uses: number;
}

/**
 * The shortest time between a failed connection and the next attempt. Temporal decides on retries.
 */
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 10_000;

/** Creates a link. `onChange` is called when the server's list of tools may have changed. */
export function createLink(server: McpServer, env: Environment, onChange: () => void): McpLink {
  let line: Line | null = null;
  let failures = 0;
  let failed: { readonly error: unknown; readonly until: number } | null = null;
  const ending = new AbortController();
  const { signal } = ending;
  setMaxListeners(0, signal);

  const open = (): Line => {
    if (line !== null) return line;
    if (signal.aborted) throw new CallFault('unsent', 'this worker is shutting down');
    if (failed !== null && performance.now() < failed.until) throw failed.error;
    const opened: Line = {
      uses: 0,
      made: connect(server, env, { onLost: () => leave(opened), onToolsChanged: onChange, signal }),
    };
    line = opened;
    opened.made.then(
      () => (failures = 0),
      (error: unknown) => {
        const waitMs = Math.min(FIRST_PAUSE_MS * 2 ** failures, MAX_PAUSE_MS);
        failures += 1;
        failed = { error, until: performance.now() + waitMs };
        leave(opened);
      },
    );
    return opened;
  };

  /**
   * Stops using a connection. If calls still wait for answers on it, the last of them closes it.
   */
  const leave = (old: Line): void => {
    if (line === old) {
      line = null;
      onChange();
    }
    if (old.uses === 0) void closeLine(old);
  };

  return {
    async use(work) {
      const used = open();
      used.uses += 1;
      try {
        return await work(await used.made);
      } catch (error) {
        if (error instanceof CallFault && line === used) leave(used);
        throw error;
      } finally {
        used.uses -= 1;
        if (used.uses === 0 && line !== used) void closeLine(used);
      }
    },
    async close() {
      ending.abort();
      if (line !== null) await closeLine(line);
    },
  };
}

async function closeLine({ made }: Line): Promise<void> {
  const connection = await made.catch(() => null);
  await connection?.close();
}
