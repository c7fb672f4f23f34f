import { execFile } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isOwn } from './listener.js';

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
