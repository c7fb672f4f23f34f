import { ToolError } from '../tool-error.js';

/** Errors that the model can fix. All other errors, such as a full disk, are retried. */
const FIXES: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist; list the folder to see what does',
  ENOTDIR: 'is not a folder, or a part of its path is a file or a link',
  EEXIST: 'is not a folder, or a part of its path is a file or a link',
  EISDIR: 'is a folder; name a file in it',
  EACCES: 'may not be accessed: no permission',
  EPERM: 'may not be accessed: the operation is not permitted',
  ELOOP: 'is a symbolic link that may not be followed',
  ENAMETOOLONG: 'has a name that is too long',
  EROFS: 'lies on a read-only file system',
  ENXIO: 'is not an ordinary file',
  EREPLACED: 'was replaced while it was opened, or a folder above it was; try again',
  ETOODEEP: 'lies deeper than 128 folders, which these tools do not support',
};

/**
 * Converts a file system error for the model, with the path as the model wrote it, never the real
 * one. Returns a `ToolError` if other arguments can fix it, else an `Error`, which is retried.
 */
export function fileError(requested: string, error: unknown): Error {
  if (error instanceof ToolError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  const fix = FIXES[code];
  if (fix !== undefined) return new ToolError(`${quote(requested)} ${fix}`);
  if (code.startsWith('E')) {
    return new Error(`${quote(requested)} is currently not usable (${code})`, { cause: error });
  }
  return error instanceof Error ? error : new Error(`${quote(requested)}: ${String(error)}`);
}

/**
 * Returns a path for a message: in quotes, with escaped control characters, at most 300 characters.
 */
export function quote(requested: string): string {
  return JSON.stringify(requested.length > 300 ? `${requested.slice(0, 300)}…` : requested);
}
