import { hostname } from 'node:os';
import { isLoopback } from './live-options.js';
import type { LiveWorker } from './worker-files.js';

/** Names of the machines, beside this one, whose workers may be read: PERDURE_LIVE_HOSTS. */
export function readLiveHosts(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return (env['PERDURE_LIVE_HOSTS'] ?? '')
    .split(',')
    .map((host) => host.trim().toLowerCase())
    .filter((host) => host !== '');
}

/**
 * The address at which a worker may be asked, and given its token: on this machine where it says that it
 * runs here, or a machine that the user has named. Null where it may not.
 */
export function reachableUrl(
  { url, host }: Pick<LiveWorker, 'url' | 'host'>,
  hosts: readonly string[],
): string | null {
  const {
    protocol,
    hostname: named,
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
  if (isLoopback(named)) return isHere ? new URL(url).origin : null;
  // It serves all addresses of this machine: the nearest one cannot lead anywhere else.
  if (isHere && named === hostname().toLowerCase()) return `http://127.0.0.1:${port || '80'}`;
  return hosts.includes(named) ? new URL(url).origin : null;
}
