import type { ServerHandle } from '../../server/server-handle.js';

/** The server, the credentials, and the task queue that `doctor` checks. */
export interface Place {
  readonly server: ServerHandle;
  readonly env: NodeJS.ProcessEnv;
  readonly taskQueue: string;
}
