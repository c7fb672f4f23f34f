import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { isListening } from './probe.js';
import { LOOPBACK } from './server-settings.js';

/**
 * Below the range from which the system takes ports for outgoing connections, so that a server
 * which is started again finds its port free.
 */
const OWN_PORTS = { from: 20_000, to: 30_000 } as const;

const RELEASE_LIMIT_MS = 2000;
const POLL_MS = 20;

/** `preferred` if it is free on the loopback interface, else any free port. */
export async function freePort(preferred: number | null): Promise<number> {
  if (preferred !== null && (await isFree(preferred))) return preferred;
  for (;;) {
    const port = randomInt(OWN_PORTS.from, OWN_PORTS.to);
    if (await isFree(port)) return port;
  }
}

/**
 * As `freePort`, for a port that a server of ours has held: the system gives it back a moment
 * after a killed process has left the process table.
 */
export async function formerPort(port: number): Promise<number> {
  const deadline = Date.now() + RELEASE_LIMIT_MS;
  while (!(await isFree(port)) && Date.now() < deadline) await pause(POLL_MS);
  return await freePort(port);
}

async function isFree(port: number): Promise<boolean> {
  // Where addresses may be shared, binding succeeds beside a server that listens on all of them.
  if (await isListening(`${LOOPBACK}:${port}`)) return false;
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, LOOPBACK, () => server.close(() => resolve(true)));
  });
}
