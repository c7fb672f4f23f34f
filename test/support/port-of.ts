import type { Server } from 'node:net';

/** Returns the port of a listening test server. */
export function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it does not listen');
  return address.port;
}
