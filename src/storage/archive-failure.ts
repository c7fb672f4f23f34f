import { diskCure } from './disk-cures.js';
import { ArchiveError, type ArchiveErrorKind } from './archive.js';

/** What the file system said about an archive's file, with what to do about it. */
export function archiveFailure(
  kind: ArchiveErrorKind,
  { file, error }: { readonly file: string; readonly error: NodeJS.ErrnoException },
): ArchiveError {
  const verb = kind === 'unwritable' ? 'written' : 'read';
  return new ArchiveError(kind, `the archive ${file} cannot be ${verb}: ${diskCure(error)}`, {
    cause: error,
  });
}
