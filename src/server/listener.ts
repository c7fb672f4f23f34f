import { execFile } from 'node:child_process';
import { readFile, readdir, readlink } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The process that accepts connections to a port of 127.0.0.1. */
export interface Listener {
  /** The user that opened the socket. */
  readonly uid: number;
  /** Linux only: identifies the socket among the open files of its process. */
  readonly inode?: string;
}

/** The state LISTEN in the kernel's table. */
const LISTEN = '0A';
/** 127.0.0.1 and `::ffff:127.0.0.1` in the format of the kernel's table. */
const EXACT = /^(?:0{16}FFFF0000)?0100007F$/;
/** All addresses, of IPv4 or of both. */
const WILDCARD = /^(?:0{8}|0{32})$/;

/**
 * Returns the listener at a port of 127.0.0.1; null if none is known, `undefined` if the system
 * does not report listeners. Linux has `/proc/net/tcp`. Other systems need `lsof`, which lists only
 * the user's own sockets unless root runs it, so null can also mean a foreign listener.
 */
export async function listenerAt(port: number): Promise<Listener | null | undefined> {
  return process.platform === 'linux' ? await fromKernel(port) : await fromLsof(port);
}

/** Returns whether this user opened the listening socket; true on systems without user ids. */
export function isOwn({ uid }: { readonly uid: number }): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

/**
 * Returns whether one of these processes holds the socket open; true if that cannot be determined.
 */
export async function isHeldBy({ inode }: Listener, pids: readonly number[]): Promise<boolean> {
  if (inode === undefined) return true;
  const held = await Promise.all(pids.map((pid) => openSockets(pid)));
  return held.some((sockets) => sockets === null || sockets.includes(`socket:[${inode}]`));
}

async function fromKernel(port: number): Promise<Listener | null | undefined> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => null)),
  );
  if (tables.every((table) => table === null)) return undefined;
  const portHex = port.toString(16).toUpperCase().padStart(4, '0');
  const listening = tables.flatMap((table) =>
    (table ?? '').split('\n').flatMap((line) => {
      const [, local = '', , state, , , , uid, , inode] = line.trim().split(/\s+/);
      const [address = '', at] = local.split(':');
      return state === LISTEN && at === portHex ? [{ address, uid: Number(uid), inode }] : [];
    }),
  );
  const exact = listening.filter(({ address }) => EXACT.test(address));
  const accepting =
    exact.length > 0 ? exact : listening.filter(({ address }) => WILDCARD.test(address));
  // Sockets may share a port; a single foreign one can accept the connection.
  const [found] = accepting.toSorted((a, b) => Number(isOwn(a)) - Number(isOwn(b)));
  if (found === undefined) return null;
  return { uid: found.uid, ...(found.inode !== undefined && { inode: found.inode }) };
}

async function fromLsof(port: number): Promise<Listener | null | undefined> {
  const found = await run('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fu']).catch(
    (error: unknown) => {
      const code = error instanceof Error && 'code' in error ? error.code : null;
      // lsof exits with 1 if it finds nothing.
      return code === 1 ? { stdout: '' } : null;
    },
  );
  if (found === null) return undefined;
  const uids = [...found.stdout.matchAll(/^u(\d+)$/gm)].map(([, uid]) => ({ uid: Number(uid) }));
  return uids.toSorted((a, b) => Number(isOwn(a)) - Number(isOwn(b)))[0] ?? null;
}

/** Returns null if the open files of the process cannot be read. */
async function openSockets(pid: number): Promise<readonly string[] | null> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => null);
  if (names === null) return null;
  return await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
}
