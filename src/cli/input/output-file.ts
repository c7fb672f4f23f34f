import { rename, stat, writeFile } from 'node:fs/promises';
import { visible } from '../../core/state/summaries.js';
import { UsageError } from '../context.js';

/** A file that an option names. */
interface OutputFile {
  /** The option, such as `--out`. */
  readonly option: string;
  readonly file: string;
}

/**
 * Throws a `UsageError` if a file with data exists: it would be lost. Reports, which a job of CI writes each
 * time, are overwritten instead. `force`: overwrite it.
 */
export async function assertNewFile({ option, file }: OutputFile, force = false): Promise<void> {
  if (force) return;
  const found = await stat(file).catch(() => null);
  // The writer reports a folder, and a pipe or a device has nothing to lose.
  if (found?.isFile() !== true) return;
  throw new UsageError(
    `${option}: expected a new file, got ${visible(file)}, which exists; name another file, or overwrite it with --force`,
  );
}

/** Writes a file that an option names. Throws a `UsageError` if that is impossible. */
export async function writeOutput({ option, file }: OutputFile, text: string): Promise<void> {
  await writeFile(file, text).catch((error: unknown) => {
    throw unwritable({ option, file }, error);
  });
}

/** Gives a file that was written its name. Throws a `UsageError` if that is impossible. */
export async function renameOutput({ option, file }: OutputFile, written: string): Promise<void> {
  await rename(written, file).catch((error: unknown) => {
    throw unwritable({ option, file }, error);
  });
}

/** Returns the error for a file that cannot be written. */
export function unwritable({ option, file }: OutputFile, error: unknown): UsageError {
  const reason = error instanceof Error ? error.message : String(error);
  return new UsageError(`${option}: expected a writable file, got ${visible(file)} (${reason})`, {
    cause: error,
  });
}
