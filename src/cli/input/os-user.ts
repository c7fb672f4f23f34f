import { userInfo } from 'node:os';

const MAX_CHARACTERS = 200;

/** Returns who runs the command, as the operating system reports it. The run does not verify it. */
export function osUser(): string {
  return `unverified: os-user ${userName()}`.slice(0, MAX_CHARACTERS);
}

/** Returns the user id if the user has no name, as in many containers. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
