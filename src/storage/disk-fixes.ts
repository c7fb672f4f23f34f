/** The fix for a lost text. */
export const RESTORE =
  'restore it from a backup, or let all workers use the PERDURE_HOME/blobs that has it';

const ELSEWHERE = 'set PERDURE_HOME to a writable folder';

const FIXES: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: free space',
  EDQUOT: 'the disk quota is used up: free space',
  EROFS: `the file system is read-only: ${ELSEWHERE}`,
  EACCES: `no permission: change its owner or ${ELSEWHERE}`,
  EPERM: `no permission: change its owner or ${ELSEWHERE}`,
  ENOTDIR: 'a part of the path is a file: set PERDURE_HOME to a folder',
  EEXIST: 'a part of the path is a file: set PERDURE_HOME to a folder',
  ENOENT: 'it does not exist: mount it, or set PERDURE_HOME to the folder that has it',
  EIO: 'the disk is failing: check it',
  ESTALE: 'the network disk was lost: mount it again',
  EFBIG: 'the limit on file size is reached: raise it (ulimit -f)',
  EISDIR: 'a folder is in its place: move it away',
};

/** Describes an error of the file system with its fix: `the disk is full: free space (ENOSPC)`. */
export function describeDiskError({ code = 'error', message }: NodeJS.ErrnoException): string {
  return `${FIXES[code] ?? message} (${code})`;
}
