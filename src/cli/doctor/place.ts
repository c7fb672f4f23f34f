import type { ServerHandle } from '../../server/server-handle.js';

/** The server, the credentials, the task queue, and the agents that `doctor` checks. */
export interface CheckTarget {
  readonly server: ServerHandle;
  readonly env: NodeJS.ProcessEnv;
  readonly taskQueue: string;
  /** The names of the agents of the configuration. */
  readonly agents: readonly string[];
}
