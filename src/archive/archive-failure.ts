import { ArchiveError, type ArchiveErrorKind } from './archive.js';

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

/** What the file system said about an archive's file, with what to do about it. */
export function archiveFailure(
  kind: ArchiveErrorKind,
  { file, error }: { readonly file: string; readonly error: NodeJS.ErrnoException },
): ArchiveError {
  const { code = 'error', message } = error;
  const verb = kind === 'unwritable' ? 'written' : 'read';
  return new ArchiveError(
    kind,
    `the archive ${file} cannot be ${verb}: ${CURES[code] ?? message} (${code})`,
    { cause: error },
  );
}
