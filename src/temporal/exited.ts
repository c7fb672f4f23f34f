import { hostname } from 'node:os';

/** A process, by its number and the name of its machine. */
export interface ProcessPlace {
  readonly pid: number;
  readonly host: string;
}

/**
 * Returns whether a process of this machine has ended. False for other machines, and for a process of
 * another user, unless the process ran as this user: its number then belongs to another process.
 */
export function hasExited(
  { pid, host }: ProcessPlace,
  { ranAsThisUser }: { readonly ranAsThisUser: boolean },
): boolean {
  if (host !== hostname()) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return ranAsThisUser || (error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}
