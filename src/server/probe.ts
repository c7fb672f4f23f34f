import { isLoopback } from '../core/text/loopback.js';
import { connect } from 'node:net';
import { Connection } from '@temporalio/client';
import { connectionTarget } from '../temporal/connection.js';
import { isUnanswered } from '../temporal/grpc.js';
import { messageOf } from './server-error.js';
import { LOOPBACK } from './server-settings.js';

/** The result of a probe: the version of a Temporal server, or why none answers. */
export type Probe =
  | { readonly alive: true; readonly version: string | null }
  /** `isSilent`: nothing answers there; absent if something else is wrong. */
  | { readonly alive: false; readonly reason: string; readonly isSilent?: boolean };

export interface ProbeOptions {
  readonly timeoutMs?: number;
  /**
   * The variables, and the profile that they name, with the API key and TLS settings; absent: none.
   */
  readonly env?: NodeJS.ProcessEnv;
}

const PROBE_TIMEOUT_MS = 3000;

/**
 * Queries the server's version over gRPC: an open port alone is not a Temporal server. Never
 * throws.
 */
export async function probeAddress(address: string, options: ProbeOptions = {}): Promise<Probe> {
  const timeoutMs = options.timeoutMs ?? PROBE_TIMEOUT_MS;
  if (isLoopbackAddress(address) && !(await isListening(address, timeoutMs))) {
    return { alive: false, reason: 'nothing listens there', isSilent: true };
  }
  try {
    return await withConnection(address, { ...options, timeoutMs }, async (connection) => {
      const info = await connection.workflowService.getSystemInfo({});
      return { alive: true, version: info.serverVersion || null };
    });
  } catch (error) {
    return { alive: false, reason: errorText(error), isSilent: isSilence(error) };
  }
}

/** Opens a connection for `use` and always closes it. */
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

/** Returns whether an address is on the loopback interface. */
export function isLoopbackAddress(address: string): boolean {
  return /:\d+$/.test(address) && isLoopback(address.replace(/:\d+$/, ''));
}

/**
 * Returns whether a socket accepts connections. Unlike gRPC, it does not retry until a deadline.
 */
export function isListening(address: string, timeoutMs = PROBE_TIMEOUT_MS): Promise<boolean> {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const socket = connect({ host: host || LOOPBACK, port: Number(address.slice(colon + 1)) });
    const finish = (listening: boolean): void => {
      socket.destroy();
      resolve(listening);
    };
    socket.setTimeout(timeoutMs, () => finish(false));
    socket.once('connect', () => finish(true));
    socket.once('error', () => finish(false));
  });
}

/** Whether nothing has answered, as opposed to a server that refuses the connection. */
function isSilence(error: unknown): boolean {
  return isUnanswered(error) || messageOf(error).includes('Failed to connect before the deadline');
}

function errorText(error: unknown): string {
  const cause = error instanceof Error && error.cause ? `: ${messageOf(error.cause)}` : '';
  return messageOf(error) + cause;
}
