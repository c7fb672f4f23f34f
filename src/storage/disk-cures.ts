const ELSEWHERE = 'set PERDURE_HOME to a writable folder';

const CURES: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: free space',
  EDQUOT: 'the disk quota is used up: free space',
  EROFS: `the file system is read-only: ${ELSEWHERE}`,
  EACCES: `no permission: change its owner or ${ELSEWHERE}`,
  EPERM: `no permission: change its owner or ${ELSEWHERE}`,
  ENOTDIR: 'a part of the path is a file: set PERDURE_HOME to a folder',
  EEXIST: 'a part of the path is a file: set PERDURE_HOME to a folder',
  EISDIR: 'a folder is in its place: move it away',
};

/** What the file system said, with what to do about it: `the disk is full: free space (ENOSPC)`. */
export function diskCure({ code = 'error', message }: NodeJS.ErrnoException): string {
  return `${CURES[code] ?? message} (${code})`;
}
