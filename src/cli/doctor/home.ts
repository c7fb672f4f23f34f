import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { formatBytes } from '../../core/summaries.js';
import { locateHome } from '../../server/server-home.js';
import type { Finding } from './finding.js';

/** PERDURE_HOME: what lies there, and whether large texts can be put there. Nothing is created. */
export async function homeFinding(folder: string): Promise<Finding> {
  const home = await locateHome(folder);
  const blobs = join(home.folder, 'blobs');
  const databaseBytes = await sizeOf([home.databaseFile, `${home.databaseFile}-wal`]);
  const writable = await canWrite(blobs);
  const data = { home: home.folder, databaseBytes, blobs, blobsWritable: writable };
  const database =
    databaseBytes === null ? 'no database yet' : `database ${formatBytes(databaseBytes)}`;
  const text = `${home.folder}: ${database}, ${writable ? 'blobs can be written' : 'blobs cannot be written'}`;
  if (writable) return { name: 'home', level: 'ok', text, data };
  const cure = `make ${blobs} writable, or set PERDURE_HOME to a folder that is`;
  return { name: 'home', level: 'problem', text, cure, data };
}

async function sizeOf(files: readonly string[]): Promise<number | null> {
  const sizes = await Promise.all(
    files.map((file) =>
      stat(file).then(
        ({ size }) => size,
        () => null,
      ),
    ),
  );
  const [first] = sizes;
  return first === null ? null : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

/** Of a folder that is not there yet, the one in which it would be made. */
async function canWrite(folder: string): Promise<boolean> {
  const found = await stat(folder).catch(() => null);
  if (found === null) return dirname(folder) !== folder && (await canWrite(dirname(folder)));
  if (!found.isDirectory()) return false;
  return await access(folder, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
}
