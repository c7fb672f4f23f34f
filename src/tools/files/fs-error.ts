import { ToolError } from '../tool-error.js';

/** What the model can do about it; the others (disk full, I/O errors) are worth another attempt. */
const CURES: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist; list the folder to see what does',
  ENOTDIR: 'is not a folder, or a part of its path is a file or a link',
  EEXIST: 'is not a folder, or a part of its path is a file or a link',
  EISDIR: 'is a folder; name a file in it',
  EACCES: 'may not be accessed: no permission',
  EPERM: 'may not be accessed: the operation is not permitted',
  ELOOP: 'is a symbolic link that may not be followed',
  ENAMETOOLONG: 'is too long a name',
  EROFS: 'lies on a read-only file system',
  ENXIO: 'is no ordinary file',
  EREPLACED: 'was replaced, or a folder on the way to it, while it was opened; try again',
  ETOODEEP: 'lies deeper than 128 folders; these tools do not go there',
};

/**
 * An error of the file system, as the model shall hear it: with the path as the model wrote it, never
 * the one on this machine. What no other arguments can mend is thrown as a plain error, for a retry.
 */
export function fileError(asked: string, error: unknown): Error {
  if (error instanceof ToolError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  const cure = CURES[code];
  if (cure !== undefined) return new ToolError(`${quote(asked)} ${cure}`);
  if (code.startsWith('E')) {
    return new Error(`${quote(asked)} cannot be used now (${code})`, { cause: error });
  }
  return error instanceof Error ? error : new Error(`${quote(asked)}: ${String(error)}`);
}

/** A path as it may stand in a message: in quotes, control characters escaped, not endless. */
export function quote(asked: string): string {
  return JSON.stringify(asked.length > 300 ? `${asked.slice(0, 300)}…` : asked);
}
