import { hostname } from 'node:os';
import { isLoopback } from '../core/text/loopback.js';
import type { LiveWorker } from './worker-files.js';

/** Returns PERDURE_LIVE_HOSTS: the machines, besides this one, whose workers may be read. */
export function readLiveHosts(
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  return (env['PERDURE_LIVE_HOSTS'] ?? '')
    .split(',')
    .map((host) => host.trim().toLowerCase())
    .filter((host) => host !== '');
}

/**
 * Returns the URL at which a worker may be read and sent its token: on this machine if the worker
 * reports that it runs here, or on a machine that the user has named. Returns null for any other
 * address.
 */
export function reachableUrl(
  { url, host }: Pick<LiveWorker, 'url' | 'host'>,
  hosts: readonly string[],
): string | null {
  const {
    protocol,
    hostname: name,
    port,
    username,
    password,
    pathname,
    search,
    hash,
  } = new URL(url);
  const rest = `${username}${password}${search}${hash}`;
  if (protocol !== 'http:' || rest !== '' || pathname !== '/') return null;
  const isHere = host === hostname();
  if (isLoopback(name)) return isHere ? new URL(url).origin : null;
  // The worker listens on all addresses of this machine; the loopback address cannot lead
  // elsewhere.
  if (isHere && name === hostname().toLowerCase()) return `http://127.0.0.1:${port || '80'}`;
  return hosts.includes(name) ? new URL(url).origin : null;
}
