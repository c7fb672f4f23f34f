import { userInfo } from 'node:os';
import { UsageError } from '../exit-codes.js';

const MAX_CHARACTERS = 200;

/** Returns who runs the command, as the operating system reports it. The run does not verify it. */
export function osUser(): string {
  return `unverified:os-user:${userName()}`.slice(0, MAX_CHARACTERS);
}

/**
 * Returns the name of the decider: the value of `--by`, else the user of the operating system.
 * Throws a `UsageError` for a name that a run would refuse.
 */
export function deciderName(by: string | undefined): string {
  if (by === undefined) return osUser();
  if (by.trim() !== '' && by.length <= MAX_CHARACTERS) return by;
  throw new UsageError(
    `--by: expected a name of 1 to ${MAX_CHARACTERS} characters, got ${by.length}; omit it for the OS user`,
  );
}

/** Returns the user id if the user has no name, as in many containers. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
