import { createHash } from 'node:crypto';
import { assertSha256, BlobError, type BlobErrorKind, type BlobStore } from './blob-store.js';
import { RESTORE } from './disk-fixes.js';
import {
  type Archive,
  ArchiveError,
  type ArchivedHistory,
  type ArchivedRun,
  type ArchiveErrorKind,
} from './archive.js';

/**
 * Stores whole objects by name. A name consists of parts of at most 105 plain characters, joined by
 * `/`.
 */
export interface ObjectStore {
  /** The location of the store, for messages. */
  readonly place: string;
  /** Resolves when the whole object is stored. Rejects with an error that names the fix. */
  put(name: string, bytes: Buffer): Promise<void>;
  /**
   * Stores an object whose name is free, and returns true; false if the name is taken. Rejects like
   * `put`.
   */
  create(name: string, bytes: Buffer): Promise<boolean>;
  /** Returns null if the object does not exist. Rejects if the store cannot be read. */
  get(name: string): Promise<Buffer | null>;
  /** Returns the last parts of the names that begin with `folder/`. */
  list(folder: string): Promise<readonly string[]>;
}

/**
 * Creates an `Archive` in a store. Objects are named
 * `<namespace>/<workflow id>/<time>-<events>-<first run id>-<run id>.json`.
 */
export function archiveIn(objects: ObjectStore): Archive {
  const attempt = async <T>(kind: ArchiveErrorKind, act: () => Promise<T>): Promise<T> => {
    try {
      return await act();
    } catch (cause) {
      const verb = kind === 'unwritable' ? 'written' : 'read';
      const why = cause instanceof Error ? cause.message : String(cause);
      const message = `the archive in ${objects.place} cannot be ${verb}: ${why}`;
      throw new ArchiveError(message, { kind, cause });
    }
  };
  return {
    write: (run, history, json) =>
      attempt('unwritable', () => objects.put(nameOf(run, history), Buffer.from(json))),
    list: (run) =>
      attempt('unreadable', async () => (await objects.list(folderOf(run))).flatMap(parseName)),
    read: (run, history) =>
      attempt('unreadable', async () => {
        const name = nameOf(run, history);
        const bytes = await objects.get(name);
        if (bytes === null) throw new Error(`${name} is missing; restore it from a backup`);
        return bytes.toString();
      }),
  };
}

function folderOf({ namespace, id }: ArchivedRun): string {
  return `${safeName(namespace)}/${safeName(id)}`;
}

const NAME = /^(\d{15})-(\d{6,})-([0-9a-f-]{36})-([0-9a-f-]{36})\.json$/;

/**
 * Returns the name of a history. The time comes first, so a listing by name is in order. Throws an
 * `Error` if the ids do not have the form of Temporal's ids.
 */
function nameOf(run: ArchivedRun, { at, events, firstRunId, runId }: ArchivedHistory): string {
  const time = String(Math.floor(at)).padStart(15, '0');
  const name = `${time}-${String(events).padStart(6, '0')}-${firstRunId}-${runId}.json`;
  if (NAME.test(name)) return `${folderOf(run)}/${name}`;
  throw new Error(`history: expected the ids of a run on Temporal, got ${JSON.stringify(name)}`);
}

/** Returns an empty list for a name that no archive has assigned. */
function parseName(name: string): readonly ArchivedHistory[] {
  const [, at, events, firstRunId = '', runId = ''] = NAME.exec(name) ?? [];
  if (runId === '') return [];
  return [{ at: Number(at), events: Number(events), firstRunId, runId }];
}

/** Matches short names whose characters no file system folds, reserves, or normalizes. */
const PLAIN = /^[a-z0-9](?:[a-z0-9._-]{0,58}[a-z0-9])?$/;
const READABLE_CHARACTERS = 40;

/**
 * Returns a part of a name for any text: a short plain text is its own name; any other text becomes
 * its readable part and a SHA-256. Different texts get different names, even where case is ignored.
 * A name has at most 105 characters and never leads out of its folder.
 */
function safeName(text: string): string {
  if (PLAIN.test(text)) return text;
  const readable = text
    .slice(0, 4 * READABLE_CHARACTERS)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, READABLE_CHARACTERS)
    .replaceAll(/^-|-$/g, '');
  // Uses UTF-16, because UTF-8 encodes all lone surrogates alike.
  const hash = createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('hex');
  return readable === '' ? hash : `${readable}-${hash}`;
}

/**
 * Creates a `BlobStore` in an object store. Objects are named `ab/cd/abcd…`. Each `put` writes the
 * same bytes under the same name again, which repairs a damaged object. `get` checks the hash.
 */
export function blobsIn(objects: ObjectStore): BlobStore {
  const attempt = async <T>(kind: BlobErrorKind, act: () => Promise<T>): Promise<T> => {
    try {
      return await act();
    } catch (cause) {
      const verb = kind === 'unwritable' ? 'written to' : 'read in';
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new BlobError(`blobs cannot be ${verb} ${objects.place}: ${why}`, { kind, cause });
    }
  };
  return {
    async put(text) {
      const bytes = Buffer.from(text);
      const sha256 = sha256Of(bytes);
      await attempt('unwritable', () => objects.put(blobName(sha256), bytes));
      return { sha256, bytes: bytes.length };
    },
    async get({ sha256 }) {
      assertSha256(sha256);
      const bytes = await attempt('unreadable', () => objects.get(blobName(sha256)));
      if (bytes === null) {
        throw new BlobError(`blob ${sha256} is missing from ${objects.place}; ${RESTORE}`, {
          kind: 'missing',
        });
      }
      if (sha256Of(bytes) === sha256) return bytes.toString();
      const found = `${bytes.length} bytes with another hash`;
      throw new BlobError(`blob ${sha256} in ${objects.place} is damaged (${found}); ${RESTORE}`, {
        kind: 'damaged',
      });
    },
  };
}

function blobName(sha256: string): string {
  return `${sha256.slice(0, 2)}/${sha256.slice(2, 4)}/${sha256}`;
}

function sha256Of(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
