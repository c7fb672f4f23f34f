import { CallFault } from '../tools/arguments/call-fault.js';
import { connect, type McpConnection } from './connection.js';
import type { McpServer } from './mcp-server.js';
import type { Environment } from './handed.js';

/** The way to a server: at most one connection that is in use, made when somebody needs it. */
export interface McpLink {
  /** Does something over the connection. Where that fails with a `CallFault`, the next who comes connects anew. */
  use<T>(work: (connection: McpConnection) => Promise<T>): Promise<T>;
  /** Never rejects. */
  close(): Promise<void>;
}

interface Line {
  readonly made: Promise<McpConnection>;
  uses: number;
}

/** After a connection failed, the next one is not tried before; whether it is at all, Temporal decides. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;

/** `onChange`: what was listed before does not hold any more. */
export function createLink(server: McpServer, env: Environment, onChange: () => void): McpLink {
  let line: Line | null = null;
  let failures = 0;
  let failed: { readonly error: unknown; readonly until: number } | null = null;
  const ending = new AbortController();
  const { signal } = ending;

  const open = (): Line => {
    if (line !== null) return line;
    if (signal.aborted) throw new CallFault('unsent', 'this worker is shutting down');
    if (failed !== null && Date.now() < failed.until) throw failed.error;
    const opened: Line = {
      uses: 0,
      made: connect(server, env, { onLost: () => leave(opened), onToolsChanged: onChange, signal }),
    };
    line = opened;
    opened.made.then(
      () => (failures = 0),
      (error: unknown) => {
        const waitMs = Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS);
        failures += 1;
        failed = { error, until: Date.now() + waitMs };
        leave(opened);
      },
    );
    return opened;
  };

  /** Others may still wait for their answers on it; the last of them closes it. */
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
