/** What to do about a text that is lost. */
export const RESTORE =
  'restore it from a backup, or let all workers use the PERDURE_HOME/blobs that has it';

const ELSEWHERE = 'set PERDURE_HOME to a writable folder';

const CURES: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: free space',
  EDQUOT: 'the disk quota is used up: free space',
  EROFS: `the file system is read-only: ${ELSEWHERE}`,
  EACCES: `no permission: change its owner or ${ELSEWHERE}`,
  EPERM: `no permission: change its owner or ${ELSEWHERE}`,
  ENOTDIR: 'a part of the path is a file: set PERDURE_HOME to a folder',
  EEXIST: 'a part of the path is a file: set PERDURE_HOME to a folder',
  ENOENT: 'it is not there: mount it, or set PERDURE_HOME to the folder that has it',
  EIO: 'the disk does not work: check it',
  ESTALE: 'the network disk was lost: mount it again',
  EFBIG: 'a limit on the size of files is reached: raise it (ulimit -f)',
  EISDIR: 'a folder is in its place: move it away',
};

/** What the file system said, with what to do about it: `the disk is full: free space (ENOSPC)`. */
export function diskCure({ code = 'error', message }: NodeJS.ErrnoException): string {
  return `${CURES[code] ?? message} (${code})`;
}
