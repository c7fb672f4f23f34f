import type { ServerHandle } from '../../server/server-handle.js';

/** Which server, as whom, and which queue is meant. */
export interface Place {
  readonly server: ServerHandle;
  readonly env: NodeJS.ProcessEnv;
  readonly taskQueue: string;
}
