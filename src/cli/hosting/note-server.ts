import type { ServerHandle } from '../../server/server-handle.js';
import type { CliContext } from '../context.js';

/** Notes that this call started a server, which outlives the command, and how to stop it. */
export function noteServer({ note }: Pick<CliContext, 'note'>, server: ServerHandle): void {
  if (server.how !== 'started') return;
  const stop = server.pid === null ? '' : `; stop it with: kill ${server.pid}`;
  note(`Started a Temporal server for ${server.home}. It stays up for the next command${stop}`);
}
