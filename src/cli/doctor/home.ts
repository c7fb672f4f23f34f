import { shellWord } from '../../core/text/shell.js';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { formatBytes } from '../../core/text/summaries.js';
import { exposures } from '../../server/home-permissions.js';
import { assertWritable, locateHome } from '../../server/server-home.js';
import { freeSpace, MIN_FREE_BYTES } from '../../storage/free-space.js';
import type { Finding } from './finding.js';

/**
 * Checks the contents of PERDURE_HOME, and whether files can be written to it and to its blob
 * store. Leaves no files behind.
 */
export async function homeFinding(folder: string): Promise<Finding> {
  const home = await locateHome(folder);
  const blobs = join(home.folder, 'blobs');
  const databaseBytes = await totalSize([home.databaseFile, `${home.databaseFile}-wal`]);
  const [homeWritable, writable] = [await canWrite(home.folder), await canWrite(blobs)];
  const folders = { home: home.folder, blobs };
  const data = { ...folders, databaseBytes, homeWritable, blobsWritable: writable };
  const database =
    databaseBytes === null ? 'no database yet' : `database ${formatBytes(databaseBytes)}`;
  const blobsText = writable ? 'blobs can be written' : 'blobs cannot be written';
  const text = `${home.folder}: ${database}, ${homeWritable ? blobsText : 'the folder cannot be written'}`;
  const free = await freeSpace(home.folder);
  if (free !== null && free < MIN_FREE_BYTES) {
    const left = `${text}; the disk is full (${formatBytes(free)} left)`;
    const fix = `free space on the disk of ${home.folder}: the server and the blob store cannot write`;
    return { name: 'home', level: 'problem', text: left, fix, data: { ...data, freeBytes: free } };
  }
  if (homeWritable && writable)
    return { name: 'home', level: 'ok', text, data: { ...data, freeBytes: free } };
  const fix = `make ${homeWritable ? blobs : home.folder} writable, or set PERDURE_HOME to a folder that is`;
  return { name: 'home', level: 'problem', text, fix, data };
}

/** Checks which files of PERDURE_HOME other users can access or own. */
export async function permissionsFinding(folder: string): Promise<Finding> {
  const name = 'permissions';
  const home = await locateHome(folder);
  const found = await exposures(home.folder);
  const data = { found: found.map((exposure) => ({ ...exposure })) };
  if (found.length === 0) {
    return { name, level: 'ok', text: `only you can access the files in ${home.folder}`, data };
  }
  const text = found.map(({ path, kind, mode, uid }) => {
    if (kind === 'foreign') return `${path} belongs to user ${uid}`;
    if (kind === 'link') return `${path} is a symbolic link`;
    return `${path} is open to other users (mode ${mode.toString(8).padStart(4, '0')})`;
  });
  const kinds = new Set(found.map(({ kind }) => kind));
  const fix = [
    ...(kinds.has('open') ? [`chmod -R go= ${shellWord(home.folder)}`] : []),
    ...(kinds.has('foreign') ? [`sudo chown -R "$(id -un)" ${shellWord(home.folder)}`] : []),
    ...(kinds.has('link')
      ? ['remove the symbolic links, or set PERDURE_HOME to another folder']
      : []),
  ];
  return { name, level: 'problem', text: text.join('\n'), fix: fix.join('\n'), data };
}

async function totalSize(files: readonly string[]): Promise<number | null> {
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

/**
 * Returns whether a file can be written, by writing and removing one: permissions alone do not show
 * it. Checks the parent of a missing folder.
 */
async function canWrite(folder: string): Promise<boolean> {
  const found = await stat(folder).catch(() => null);
  if (found === null) return dirname(folder) !== folder && (await canWrite(dirname(folder)));
  if (!found.isDirectory()) return false;
  return await assertWritable({ folder }).then(
    () => true,
    () => false,
  );
}
