import { execFile } from 'node:child_process';
import { readFile, readdir, readlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

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

const run = promisify(execFile);

/** The server closes its database in well under a second. After this time it is killed. */
const GRACE_MS = 10_000;
const POLL_MS = 25;

/** A running dev server, as parsed from its command line. */
export interface ServerProcess {
  readonly pid: number;
  readonly databaseFile: string;
  readonly port: number;
  readonly uiPort: number;
}

/**
 * Returns every dev server that perdure started for this user. Only the process table shows
 * reliably which server has a database open: a record on disk may be lost or stale, and SQLite lets
 * a second server open the same file. Ignores processes of other users, whose command lines can be
 * forged.
 */
export async function serverProcesses(): Promise<readonly ServerProcess[]> {
  const commands = process.platform === 'linux' ? await fromProc() : await fromPs();
  const found = commands.flatMap(({ pid, command, uid }) => {
    const server = parseServer(pid, command);
    return server === null ? [] : [{ server, uid }];
  });
  const owned = await Promise.all(
    found.map(async ({ server, uid }) => {
      const owner = uid ?? (await ownerOf(server.pid));
      return owner !== null && isOwn({ uid: owner }) ? [server] : [];
    }),
  );
  return owned.flat();
}

/**
 * Returns the effective user of a process. The owner of its folder in /proc may be root instead.
 */
async function ownerOf(pid: number): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const [, uid] = /^Uid:\s+\d+\s+(\d+)/m.exec(status) ?? [];
  return uid === undefined ? null : Number(uid);
}

/**
 * Identifies a process by its pid and start time, because pids are reused. Returns null if no such
 * process is alive.
 */
export async function processLife(pid: number): Promise<string | null> {
  if (process.platform !== 'linux') {
    const started = await run('ps', ['-o', 'lstart=', '-p', String(pid)]).catch(() => null);
    const text = started?.stdout.trim();
    return text ? `${pid}@${text}` : null;
  }
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  // The second field is the command in parentheses, which may contain parentheses and spaces.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields?.[0];
  if (!fields || state === 'Z' || state === 'X') return null;
  return `${pid}@${fields[19]}`;
}

/** Ends a process and waits until it is gone; kills it if it takes longer than ten seconds. */
export async function endProcess(pid: number): Promise<void> {
  const life = await processLife(pid);
  if (life === null) return;
  process.kill(pid, 'SIGTERM');
  const deadline = performance.now() + GRACE_MS;
  while ((await processLife(pid)) === life) {
    if (performance.now() > deadline) process.kill(pid, 'SIGKILL');
    await sleep(POLL_MS);
  }
}

interface Command {
  readonly pid: number;
  readonly command: string;
  /** Absent if the table does not contain it. */
  readonly uid?: number;
}

async function fromProc(): Promise<readonly Command[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return await Promise.all(
    pids.map(async (pid) => {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return { pid: Number(pid), command: line.replaceAll('\0', ' ') };
    }),
  );
}

async function fromPs(): Promise<readonly Command[]> {
  const table = await run('ps', ['-axww', '-o', 'pid=,uid=,command='], {
    maxBuffer: 1 << 26,
  }).catch(() => ({ stdout: '' }));
  return table.stdout.split('\n').flatMap((line) => {
    const [, pid, uid, command] = /^\s*(\d+)\s+(\d+)\s(.*)$/.exec(line) ?? [];
    return pid && command ? [{ pid: Number(pid), uid: Number(uid), command }] : [];
  });
}

/** Parses the arguments in the order in which `dev-server.ts` writes them. */
function parseServer(pid: number, command: string): ServerProcess | null {
  const match = / server start-dev --port (\d+) --ui-port (\d+) --db-filename (.+?) --ip /.exec(
    command,
  );
  const [, port, uiPort, databaseFile] = match ?? [];
  if (!port || !uiPort || !databaseFile) return null;
  return { pid, databaseFile, port: Number(port), uiPort: Number(uiPort) };
}
