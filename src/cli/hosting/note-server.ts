import type { ServerHandle } from '../../server/server-handle.js';
import type { CliContext } from '../context.js';

/** Says once that a server was started which outlives the command, and how to end it. */
export function noteServer({ say }: Pick<CliContext, 'say'>, server: ServerHandle): void {
  if (server.how !== 'started') return;
  const stop = server.pid === null ? '' : `; to stop it: kill ${server.pid}`;
  say(`Temporal server started for ${server.home}; it stays up for the next command${stop}`);
}
