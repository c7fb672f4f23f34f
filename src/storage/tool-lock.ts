import { createHash } from 'node:crypto';
import { isObject, parseJson } from '../core/text/json.js';
import {
  type Archive,
  ArchiveError,
  type ArchiveErrorKind,
  type ArchivedHistory,
  type ArchivedRun,
  BlobError,
  type BlobErrorKind,
  type BlobStore,
  type StoredBlob,
  StoreFault,
  assertSha256,
} from './blob-store.js';
import { RESTORE } from './files.js';

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
  /** Returns all objects in a folder and below it; an empty folder: all objects of the store. */
  entries(folder: string): Promise<readonly StoredObject[]>;
  /**
   * Removes an object unless it was stored at `before` (Unix time in ms) or later. Returns false if it
   * was, and true if it does not exist any more. Rejects like `put`.
   */
  remove(name: string, before: number): Promise<boolean>;
}

/** An object of a store. `at`: when it was last stored, in Unix time in ms. */
export interface StoredObject {
  readonly name: string;
  readonly at: number;
}

/** No namespace has this folder: a safe name does not begin with a line. */
const ERASURES = '_erasures';

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
    erasure: {
      async *all(namespace) {
        const folder = namespace === null ? '' : safeName(namespace);
        for (const { name } of await attempt('unreadable', () => objects.entries(folder))) {
          const [space, , file = ''] = name.split('/');
          const [history] = space === ERASURES ? [] : parseName(file);
          // A history that is gone by now was removed by another erasure.
          const bytes = history && (await attempt('unreadable', () => objects.get(name)));
          if (history && bytes) yield { history, json: bytes.toString() };
        }
      },
      remove: (run, history) =>
        attempt('unwritable', async () => {
          await objects.remove(nameOf(run, history), Number.POSITIVE_INFINITY);
        }),
      record: (name, json) =>
        attempt('unwritable', () =>
          objects.put(`${ERASURES}/${safeName(name)}.json`, Buffer.from(json)),
        ),
      records: () =>
        attempt('unreadable', async () => {
          const found = new Map<string, string>();
          for (const file of await objects.list(ERASURES)) {
            if (!file.endsWith('.json')) continue;
            const bytes = await objects.get(`${ERASURES}/${file}`);
            if (bytes !== null) found.set(file.slice(0, -'.json'.length), bytes.toString());
          }
          return found;
        }),
    },
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
    erasure: {
      list: () => attempt('unreadable', async () => blobsAmong(await objects.entries(''))),
      remove: async ({ sha256 }, before) => {
        assertSha256(sha256);
        return await attempt('unwritable', () => objects.remove(blobName(sha256), before));
      },
    },
  };
}

/** Returns the texts that objects hold, each once; a half-written file counts as its text. */
export function blobsAmong(objects: readonly StoredObject[]): readonly StoredBlob[] {
  const found = new Map<string, number>();
  for (const { name, at } of objects) {
    const sha256 = name.split('/').at(-1)?.slice(0, 64) ?? '';
    if (/^[0-9a-f]{64}$/.test(sha256) && name.startsWith(blobName(sha256)))
      found.set(sha256, Math.max(at, found.get(sha256) ?? 0));
  }
  return [...found].map(([sha256, at]) => ({ sha256, at }));
}

/** Returns the name of a text, `ab/cd/abcd…`. */
export function blobName(sha256: string): string {
  return `${sha256.slice(0, 2)}/${sha256.slice(2, 4)}/${sha256}`;
}

function sha256Of(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The accepted form of a tool of an MCP server. */
export interface LockedTool {
  /** The server's own name of the tool. */
  readonly tool: string;
  /** SHA-256 in hex of the form. */
  readonly hash: string;
  /** When the form was recorded: Unix time in ms. */
  readonly at: number;
  /** Whether it was trusted when it was first used, or a person has accepted it. */
  readonly how: 'first_use' | 'accepted';
}

/** A form of a tool that is to be recorded. */
export interface ToolForm {
  readonly tool: string;
  readonly hash: string;
  /** The form as JSON text, to show later what has changed. */
  readonly form: string;
}

/**
 * Records which form of each tool of an MCP server is accepted. Workers that share the other stores
 * also share the lock, and so do later runs. A server is identified by a text of at most 60 plain
 * characters.
 */
export interface ToolLock {
  /** Returns the accepted forms of a server's tools; an empty list for an unknown server. */
  read(server: string): Promise<readonly LockedTool[]>;
  /**
   * Records forms, and returns what the lock holds afterwards. With `first_use`, a tool that has a
   * form keeps it, even if another worker records one at the same time.
   */
  write(
    server: string,
    forms: readonly ToolForm[],
    how: LockedTool['how'],
  ): Promise<readonly LockedTool[]>;
  /** Returns the text of a form, or null if the lock does not have it. */
  form(hash: string): Promise<string | null>;
}

/** Attempts to record forms while other workers do so, too. */
const ATTEMPTS = 20;
const LOCK_NAME = /^(\d{6})\.json$/;

/**
 * Creates a `ToolLock` in an object store. Each change of a server's lock is a new object,
 * `servers/<server>/<number>.json`, and the highest number counts. No object ever changes, so two
 * workers cannot overwrite each other's change. Forms are stored as `forms/<hash>.json`. All methods
 * reject with a `StoreFault`.
 */
export function toolLockIn(objects: ObjectStore): ToolLock {
  const attempt = async <T>(kind: 'unreadable' | 'unwritable', act: () => Promise<T>): Promise<T> =>
    await act().catch((cause: unknown) => {
      const verb = kind === 'unwritable' ? 'written' : 'read';
      const why = cause instanceof Error ? cause.message : String(cause);
      const message = `the lock of MCP tools in ${objects.place} cannot be ${verb}: ${why}`;
      throw new StoreFault(message, { kind, cause });
    });
  const latest = async (server: string): Promise<Version> => {
    const names = await objects.list(`servers/${server}`);
    const number = Math.max(0, ...names.map((name) => Number(LOCK_NAME.exec(name)?.[1] ?? 0)));
    if (number === 0) return { number, tools: [] };
    const bytes = await objects.get(lockName(server, number));
    const tools = parseJson(bytes?.toString() ?? '');
    if (!Array.isArray(tools) || !tools.every(isLockedTool)) {
      throw new Error(
        `${lockName(server, number)} is damaged; restore it from a backup, or delete it`,
      );
    }
    return { number, tools };
  };

  return {
    read: (server) => attempt('unreadable', async () => (await latest(server)).tools),
    form: (hash) =>
      attempt('unreadable', async () => {
        const bytes = await objects.get(`forms/${hash}.json`);
        return bytes === null ? null : bytes.toString();
      }),
    write: (server, forms, how) =>
      attempt('unwritable', async () => {
        for (let tries = 0; tries < ATTEMPTS; tries += 1) {
          const { number, tools } = await latest(server);
          const known = new Map(tools.map((each) => [each.tool, each]));
          const added = forms.filter(({ tool, hash }) =>
            how === 'first_use' ? !known.has(tool) : known.get(tool)?.hash !== hash,
          );
          if (added.length === 0) return tools;
          // A form is stored before anything refers to it.
          await Promise.all(
            added.map(({ hash, form }) => objects.put(`forms/${hash}.json`, Buffer.from(form))),
          );
          const at = Date.now();
          for (const { tool, hash } of added) known.set(tool, { tool, hash, at, how });
          const next = [...known.values()];
          const bytes = Buffer.from(JSON.stringify(next));
          if (await objects.create(lockName(server, number + 1), bytes)) return next;
        }
        throw new Error('other workers change it all the time; try again');
      }),
  };
}

interface Version {
  /** 0 if the server has no lock yet. */
  readonly number: number;
  readonly tools: readonly LockedTool[];
}

function lockName(server: string, number: number): string {
  return `servers/${server}/${String(number).padStart(6, '0')}.json`;
}

function isLockedTool(value: unknown): value is LockedTool {
  if (!isObject(value)) return false;
  const { tool, hash, at, how } = value;
  const isHow = how === 'first_use' || how === 'accepted';
  return isHow && typeof tool === 'string' && typeof hash === 'string' && typeof at === 'number';
}

/**
 * Where large texts, the histories of deleted runs, and the accepted forms of MCP tools are stored.
 */
export interface Stores {
  readonly blobs: BlobStore;
  readonly archive: Archive;
  /** Absent: files in PERDURE_HOME. */
  readonly toolLock?: ToolLock;
}
