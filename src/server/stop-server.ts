import { setTimeout as pause } from 'node:timers/promises';
import { ownProcess } from './locate-server.js';
import { processLife, type ServerProcess } from './process-table.js';
import { locateHome } from './server-home.js';
import { readRecord, writeRecord } from './server-record.js';

/** The server closes its database in well under a second; after this it is killed. */
const GRACE_MS = 10_000;
const POLL_MS = 25;

/** Ends the embedded server of this home and waits until it is gone; false if none runs. */
export async function stopServer(folder: string): Promise<boolean> {
  const home = await locateHome(folder);
  const first = await ownProcess(home);
  if (!first) return false;
  // More than one where the CLI is a script that runs the real one.
  for (let server: ServerProcess | null = first; server; server = await ownProcess(home)) {
    await endProcess(server.pid);
  }
  const record = await readRecord(home.recordFile);
  // On a full disk the record keeps a pid that is dead: the process table knows better anyway.
  if (record) await writeRecord(home.recordFile, { ...record, pid: null }).catch(() => undefined);
  return true;
}

export async function endProcess(pid: number): Promise<void> {
  const life = await processLife(pid);
  if (life === null) return;
  process.kill(pid, 'SIGTERM');
  const deadline = Date.now() + GRACE_MS;
  while ((await processLife(pid)) === life) {
    if (Date.now() > deadline) process.kill(pid, 'SIGKILL');
    await pause(POLL_MS);
  }
}
