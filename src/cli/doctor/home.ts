import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { formatBytes } from '../../core/text/summaries.js';
import { exposures } from '../../server/home-permissions.js';
import { locateHome } from '../../server/server-home.js';
import { freeSpace, LEAST_FREE_BYTES } from '../../storage/free-space.js';
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
  const free = await freeSpace(home.folder);
  if (free !== null && free < LEAST_FREE_BYTES) {
    const left = `${text}; the disk is full, ${formatBytes(free)} are left`;
    const cure = `free space on the disk of ${home.folder}: neither server nor blobs can be written`;
    return { name: 'home', level: 'problem', text: left, cure, data: { ...data, freeBytes: free } };
  }
  if (writable) return { name: 'home', level: 'ok', text, data: { ...data, freeBytes: free } };
  const cure = `make ${blobs} writable, or set PERDURE_HOME to a folder that is`;
  return { name: 'home', level: 'problem', text, cure, data };
}

/** What PERDURE_HOME lets other users of the machine do, and what does not belong to this one. */
export async function permissionsFinding(folder: string): Promise<Finding> {
  const name = 'permissions';
  const home = await locateHome(folder);
  const found = await exposures(home.folder);
  const data = { found: found.map((exposure) => ({ ...exposure })) };
  if (found.length === 0) {
    return { name, level: 'ok', text: `what is in ${home.folder} is for you alone`, data };
  }
  const text = found.map(({ path, kind, mode, uid }) => {
    if (kind === 'foreign') return `${path} belongs to user ${uid}`;
    if (kind === 'link') return `${path} is a symbolic link`;
    return `${path} is open to other users (mode ${mode.toString(8).padStart(4, '0')})`;
  });
  const kinds = new Set(found.map(({ kind }) => kind));
  const cure = [
    ...(kinds.has('open') ? [`chmod -R go= ${quoted(home.folder)}`] : []),
    ...(kinds.has('foreign') ? [`sudo chown -R "$(id -un)" ${quoted(home.folder)}`] : []),
    ...(kinds.has('link') ? ['move the links away, or set PERDURE_HOME to another folder'] : []),
  ];
  return { name, level: 'problem', text: text.join('\n'), cure: cure.join('\n'), data };
}

function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
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
