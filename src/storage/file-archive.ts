import { open, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder } from './make-folder.js';
import { PRIVATE } from './private-files.js';
import { syncFolder } from './sync-folder.js';
import type { Message } from '../core/transcript/messages.js';
import { type Archive, type ArchivedRun, ArchiveError, type ArchiveErrorKind } from './archive.js';
import { linesFrom, messageIn } from './message-lines.js';
import { diskCure } from './disk-cures.js';
import { createHash } from 'node:crypto';

/** How much of a long file is looked at first; with new messages, and with a retry, that is enough. */
const TAIL_BYTES = 256 * 1024;
/** A further attempt is needed only when another process wrote into the middle of the last one. */
const ATTEMPTS = 10;
const NEWLINE = 0x0a;

/**
 * An `Archive` in a folder, which all workers of a task queue must share:
 * `<namespace>/<workflow id>/<first run id>.jsonl`, one message per line, only ever appended to.
 *
 * Nothing is locked. A killed writer, or two at once, can leave half a line or a line twice; readers
 * pass over the one and take the last of the other, and a writer is done when it has found all its
 * messages whole in the file and flushed them to disk.
 */
export function fileArchive(directory: string): Archive {
  const root = path.resolve(directory);
  return {
    async append(run, messages) {
      if (messages.length === 0) return;
      const file = placeOf(root, run);
      await append(file, messages).catch((error: NodeJS.ErrnoException) => {
        throw archiveFailure('unwritable', { file, error });
      });
      await syncFolders(root, file);
    },
    async read(run, { from = 0, to = Infinity } = {}) {
      const file = placeOf(root, run);
      return await read(file, { from, to }).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return [];
        throw archiveFailure('unreadable', { file, error });
      });
    },
  };
}

function placeOf(root: string, { namespace, id, firstRunId }: ArchivedRun): string {
  return path.join(root, safeName(namespace), safeName(id), `${safeName(firstRunId)}.jsonl`);
}

async function append(file: string, messages: readonly Message[]): Promise<void> {
  await makeFolder(path.dirname(file));
  const handle = await open(file, 'a+', PRIVATE.file);
  try {
    let missing = await missingOf(handle, linesOf(messages));
    for (let attempt = 1; missing.size > 0; attempt += 1) {
      if (attempt > ATTEMPTS) throw new Error(`what is written does not stay, ${ATTEMPTS} times`);
      const { size } = await handle.stat();
      await write(handle, { lines: missing, size });
      const { written } = await compare(handle, { lines: missing, start: size });
      missing = without(missing, written);
    }
    // Also when there was nothing to add: an earlier attempt may have died before its flush.
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** By the number of the message. */
type Lines = ReadonlyMap<number, string>;

function linesOf(messages: readonly Message[]): Lines {
  return new Map(messages.map((message) => [message.n, JSON.stringify(message)]));
}

/** In one call, so that the lines of two writers do not mix; after half a line, on a new one. */
async function write(
  handle: FileHandle,
  { lines, size }: { readonly lines: Lines; readonly size: number },
): Promise<void> {
  const start = (await endsInLine(handle, size)) ? '' : '\n';
  const text = [...lines.values()].map((line) => `${line}\n`).join('');
  await handle.write(Buffer.from(start + text));
}

async function endsInLine(handle: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return true;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === NEWLINE;
}

/**
 * The lines that are not in the file. Numbers beyond those near the file's end are taken for new
 * without a look at the rest, so that an append costs the same however long the run is; should that
 * be wrong, a line is there twice.
 */
async function missingOf(handle: FileHandle, lines: Lines): Promise<Lines> {
  const { size } = await handle.stat();
  const start = Math.max(0, size - TAIL_BYTES);
  const near = await compare(handle, { lines, start });
  const missing = without(lines, near.inForce);
  if (start === 0) return missing;
  const certain = near.newest !== -1 && [...missing.keys()].every((n) => n > near.newest);
  if (certain) return missing;
  return without(lines, (await compare(handle, { lines, start: 0 })).inForce);
}

interface Comparison {
  /** Numbers whose line stands there. */
  readonly written: ReadonlySet<number>;
  /** Those of them after which no other line of the same number comes. */
  readonly inForce: ReadonlySet<number>;
  /** The greatest number of all; -1 when there is no message. */
  readonly newest: number;
}

/** The lines against what the file has from byte `start` on. */
async function compare(
  handle: FileHandle,
  { lines, start }: { readonly lines: Lines; readonly start: number },
): Promise<Comparison> {
  const written = new Set<number>();
  const inForce = new Set<number>();
  let newest = -1;
  for await (const line of linesFrom(handle, start)) {
    const n = messageIn(line)?.n ?? -1;
    newest = Math.max(newest, n);
    if (lines.get(n) === line) {
      written.add(n);
      inForce.add(n);
    } else {
      inForce.delete(n);
    }
  }
  return { written, inForce, newest };
}

function without(lines: Lines, numbers: ReadonlySet<number>): Lines {
  return new Map([...lines].filter(([n]) => !numbers.has(n)));
}

async function read(
  file: string,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<readonly Message[]> {
  const handle = await open(file, 'r');
  try {
    const found = new Map<number, Message>();
    for await (const line of linesFrom(handle, 0)) {
      const message = messageIn(line);
      if (message !== undefined && message.n >= from && message.n < to) {
        found.set(message.n, message);
      }
    }
    return [...found.values()].toSorted((a, b) => a.n - b.n);
  } finally {
    await handle.close();
  }
}

/** Makes the new names themselves durable; not every file system offers that for folders. */
async function syncFolders(root: string, file: string): Promise<void> {
  for (let folder = path.dirname(file); folder.length >= root.length;) {
    await syncFolder(folder);
    folder = path.dirname(folder);
  }
}

/** What the file system said about an archive's file, with what to do about it. */
function archiveFailure(
  kind: ArchiveErrorKind,
  { file, error }: { readonly file: string; readonly error: NodeJS.ErrnoException },
): ArchiveError {
  const verb = kind === 'unwritable' ? 'written' : 'read';
  return new ArchiveError(kind, `the archive ${file} cannot be ${verb}: ${diskCure(error)}`, {
    cause: error,
  });
}

/** Stays itself: short, and of characters that no file system folds, reserves or normalizes. */
const PLAIN = /^[a-z0-9](?:[a-z0-9._-]{0,58}[a-z0-9])?$/;
const READABLE_CHARACTERS = 40;

/**
 * A name for a file or folder, for any text: a short plain text is its own name, any other becomes
 * its readable part and a SHA-256. Different texts have different names, also where upper and lower
 * case are one; a name is at most 105 characters long and never leaves its folder.
 */
function safeName(text: string): string {
  if (PLAIN.test(text)) return text;
  const readable = text
    .slice(0, 4 * READABLE_CHARACTERS)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, READABLE_CHARACTERS)
    .replaceAll(/^-|-$/g, '');
  // UTF-16, because in UTF-8 all halves of surrogate pairs are the same.
  const hash = createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('hex');
  return readable === '' ? hash : `${readable}-${hash}`;
}
