import { connect } from 'node:net';
import { Connection } from '@temporalio/client';
import { connectionTarget } from '../temporal/connection.js';
import { messageOf } from './server-error.js';
import { LOOPBACK } from './server-settings.js';

/** What answers at an address: a Temporal server and its version, or the reason why none does. */
export type Probe =
  | { readonly alive: true; readonly version: string | null }
  | { readonly alive: false; readonly reason: string };

export interface ProbeOptions {
  readonly timeoutMs?: number;
  /** Where given, API key and TLS are taken from these variables and the profile they name. */
  readonly env?: NodeJS.ProcessEnv;
}

const PROBE_TIMEOUT_MS = 3000;

/** Asks for the server's version over gRPC; an open port alone is no Temporal server. */
export async function probe(address: string, options: ProbeOptions = {}): Promise<Probe> {
  const timeoutMs = options.timeoutMs ?? PROBE_TIMEOUT_MS;
  if (isLoopback(address) && !(await isListening(address, timeoutMs))) {
    return { alive: false, reason: 'nothing listens there' };
  }
  try {
    return await withConnection(address, { ...options, timeoutMs }, async (connection) => {
      const info = await connection.workflowService.getSystemInfo({});
      return { alive: true, version: info.serverVersion || null };
    });
  } catch (error) {
    return { alive: false, reason: reasonOf(error) };
  }
}

/** Opens a connection for `use` and closes it whatever happens. */
export async function withConnection<T>(
  address: string,
  options: ProbeOptions,
  use: (connection: Connection) => Promise<T>,
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? PROBE_TIMEOUT_MS;
  const connection = await Connection.connect({
    ...(options.env ? connectionTarget({ address }, options.env).options : { address }),
    connectTimeout: timeoutMs,
  });
  try {
    return await connection.withDeadline(Date.now() + timeoutMs, () => use(connection));
  } finally {
    await connection.close();
  }
}

export function isLoopback(address: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+$/.test(address);
}

/** Settles in a moment where gRPC would try again until its deadline. */
export function isListening(address: string, timeoutMs = PROBE_TIMEOUT_MS): Promise<boolean> {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const socket = connect({ host: host || LOOPBACK, port: Number(address.slice(colon + 1)) });
    const settle = (listening: boolean): void => {
      socket.destroy();
      resolve(listening);
    };
    socket.setTimeout(timeoutMs, () => settle(false));
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
  });
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause ? `: ${messageOf(error.cause)}` : '';
  return messageOf(error) + cause;
}
