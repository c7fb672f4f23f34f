import { readFile } from 'node:fs/promises';

/** Milliseconds of one of the units in which Linux counts CPU time. */
const TICK_MS = 10;

/** Returns the CPU time of a process in ms; NaN where there is no /proc. */
export async function cpuMsOf(pid: number | null): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name in parentheses may have blanks; user and system time follow it.
  const [user, system] = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  return (Number(user) + Number(system)) * TICK_MS;
}
