import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isObject, textField } from '../../core/text/json.js';
import type { ServerHandle } from '../../server/server-settings.js';
import { announceIn, announcedIn, readAnnouncement } from '../../storage/announcements.js';
import { hasExited } from '../../temporal/grpc.js';

/** A console of `serve` or `dev` that runs on this machine, with the server that it shows. */
export interface RunningConsole extends Pick<ServerHandle, 'address' | 'namespace'> {
  /** Such as `http://127.0.0.1:8788`. */
  readonly url: string;
}

/**
 * Announces a console to other commands with this home, which print links to it. Returns a function that
 * withdraws that; neither throws, since only hints depend on it.
 */
export async function announceConsole(
  home: string,
  shown: RunningConsole,
): Promise<() => Promise<void>> {
  // The link is for this machine.
  const url = shown.url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
  const announced = { ...shown, url, pid: process.pid, host: hostname() };
  const withdraw = await announceIn(folderIn(home), announced).catch(() => null);
  return async () => await withdraw?.().catch(() => undefined);
}

/** Returns the consoles that processes of this machine have announced for a server. */
export async function consolesOf(
  home: string,
  { address, namespace }: Pick<ServerHandle, 'address' | 'namespace'>,
): Promise<readonly RunningConsole[]> {
  const files = await announcedIn(folderIn(home));
  const found = await Promise.all(files.map(runningIn));
  return found
    .filter((one) => one !== null)
    .filter((one) => one.address === address && one.namespace === namespace);
}

/** Returns null for anything but the console of a running process of this machine. Removes one that has died. */
async function runningIn(file: string): Promise<RunningConsole | null> {
  const json = await readAnnouncement(file);
  if (!isObject(json)) return null;
  const { pid } = json;
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return null;
  const host = textField(json, 'host');
  if (host !== hostname()) return null;
  if (hasExited({ pid, host }, { ranAsThisUser: true })) {
    await rm(file, { force: true }).catch(() => undefined);
    return null;
  }
  const url = textField(json, 'url');
  if (!URL.canParse(url) || new URL(url).protocol !== 'http:') return null;
  return { url, address: textField(json, 'address'), namespace: textField(json, 'namespace') };
}

function folderIn(home: string): string {
  return join(home, 'consoles');
}
