import { readFile } from 'node:fs/promises';

/** Milliseconds of one of the units in which Linux counts CPU time. */
const TICK_MS = 10;

/** Returns the CPU time of a process in ms; NaN where there is no /proc. */
export async function cpuMsOf(pid: number | null): Promise<number> {
  const [user, system] = await timesOf(pid);
  return (Number(user) + Number(system)) * TICK_MS;
}

/** Returns the CPU time of these processes, and of their children that have ended, in ms. */
export async function cpuMsWithChildren(pids: readonly number[]): Promise<number> {
  const times = await Promise.all(pids.map(timesOf));
  return times.flat().reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/** User and system time of a process and of its ended children, in ticks; empty for no process. */
async function timesOf(pid: number | null): Promise<readonly string[]> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name in parentheses may have blanks; the times are fields 14 to 17.
  return text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15);
}

/**
 * Returns the time in ms for which the cores of this machine had nothing to do or waited for a disk, all
 * together; NaN where there is no /proc.
 */
export async function idleMs(): Promise<number> {
  const text = await readFile('/proc/stat', 'utf8').catch(() => '');
  const [idle, waiting] = text.split(/\s+/).slice(4, 6);
  return (Number(idle) + Number(waiting)) * TICK_MS;
}
