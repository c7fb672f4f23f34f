import type { Server } from 'node:net';

/** The port on which a listening server of a test was placed. */
export function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it does not listen');
  return address.port;
}
