import { userInfo } from 'node:os';

const MOST_CHARACTERS = 200;

/** Returns who types a command, as the operating system reports it; the run does not verify it. */
export function osUser(): string {
  return `unverified: os-user ${nameOfUser()}`.slice(0, MOST_CHARACTERS);
}

/** A user may have no name, in a container for instance. */
function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
