import { open, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder } from './make-folder.js';
import { PRIVATE } from './private-files.js';
import { syncFolder } from './sync-folder.js';
import type { Message } from '../core/transcript/messages.js';
import { type Archive, type ArchivedRun, ArchiveError, type ArchiveErrorKind } from './archive.js';
import { describeDiskError } from './disk-fixes.js';
import { createHash } from 'node:crypto';
import { isObject, parseJson } from '../core/json.js';

/** How much of a long file's end is read first; it is enough for new messages and for a retry. */
const TAIL_BYTES = 256 * 1024;
/** Another attempt is needed only if another process wrote in the middle of the previous one. */
const ATTEMPTS = 10;
const NEWLINE = 0x0a;

/**
 * Makes an `Archive` in a folder, which all workers of a task queue must share:
 * `<namespace>/<workflow id>/<first run id>.jsonl`, append-only, with one message per line.
 *
 * There are no locks. A killed writer, or two concurrent ones, can leave half a line or a duplicate line;
 * readers skip half lines and use the last duplicate. A writer ends when it has found all its messages in
 * the file and flushed them to disk.
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
      if (attempt > ATTEMPTS) throw new Error(`written lines are lost, ${ATTEMPTS} times in a row`);
      const { size } = await handle.stat();
      await write(handle, { lines: missing, size });
      const { written } = await compare(handle, { lines: missing, start: size });
      missing = without(missing, written);
    }
    // Needed even if there was nothing to add: an earlier attempt may have died before its flush.
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Lines by the number of the message. */
type Lines = ReadonlyMap<number, string>;

function linesOf(messages: readonly Message[]): Lines {
  return new Map(messages.map((message) => [message.n, JSON.stringify(message)]));
}

/** Writes in one call, so that lines of two writers do not mix; after half a line, begins a new one. */
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
 * Returns the lines that are not in the file. Numbers greater than those near the file's end count as new
 * without reading the rest, so that the cost of an append does not grow with the run. If that is wrong,
 * the file gets a duplicate line.
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
  /** The numbers whose line is in the file. */
  readonly written: ReadonlySet<number>;
  /** The written numbers without a later, different line of the same number. */
  readonly inForce: ReadonlySet<number>;
  /** The greatest number in the file; -1 if there is no message. */
  readonly newest: number;
}

/** Compares lines with those in the file from byte `start`. */
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

/** Makes new names of files and folders durable; not every file system supports this. */
async function syncFolders(root: string, file: string): Promise<void> {
  for (let folder = path.dirname(file); folder.length >= root.length;) {
    await syncFolder(folder);
    folder = path.dirname(folder);
  }
}

/** Converts an error of the file system into an `ArchiveError` with the fix. */
function archiveFailure(
  kind: ArchiveErrorKind,
  { file, error }: { readonly file: string; readonly error: NodeJS.ErrnoException },
): ArchiveError {
  const verb = kind === 'unwritable' ? 'written' : 'read';
  return new ArchiveError(
    kind,
    `the archive ${file} cannot be ${verb}: ${describeDiskError(error)}`,
    {
      cause: error,
    },
  );
}

/** Matches short names whose characters no file system folds, reserves, or normalizes. */
const PLAIN = /^[a-z0-9](?:[a-z0-9._-]{0,58}[a-z0-9])?$/;
const READABLE_CHARACTERS = 40;

/**
 * Returns a name of a file or folder for any text: a short plain text is its own name, any other becomes
 * its readable part and a SHA-256. Different texts have different names, even on file systems that ignore
 * case. A name has at most 105 characters and never leads out of its folder.
 */
function safeName(text: string): string {
  if (PLAIN.test(text)) return text;
  const readable = text
    .slice(0, 4 * READABLE_CHARACTERS)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, READABLE_CHARACTERS)
    .replaceAll(/^-|-$/g, '');
  // UTF-16, because in UTF-8 all lone surrogates are the same.
  const hash = createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('hex');
  return readable === '' ? hash : `${readable}-${hash}`;
}

const CHUNK_BYTES = 256 * 1024;

/** Parses the message of a line. Returns undefined for an empty line, half a line, and any other text. */
function messageIn(line: string): Message | undefined {
  const value = parseJson(line);
  return isMessage(value) ? value : undefined;
}

function isMessage(value: unknown): value is Message {
  if (!isObject(value)) return false;
  const { n, role, text } = value;
  return Number.isSafeInteger(n) && typeof role === 'string' && typeof text === 'string';
}

/**
 * Returns the complete lines that begin at byte `start` or later. Only `\n` ends a line, because JSON texts
 * may contain all other line ends. An incomplete last line is skipped, since it may still be written.
 */
async function* linesFrom(handle: FileHandle, start: number): AsyncGenerator<string> {
  // Reads one byte earlier to see whether a line begins at `start`; a line that begins earlier is skipped.
  let earlier = start > 0;
  let begun: Buffer[] = [];
  for (let position = earlier ? start - 1 : 0; ;) {
    const chunk = await handle.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, position);
    if (chunk.bytesRead === 0) return;
    position += chunk.bytesRead;
    let rest = chunk.buffer.subarray(0, chunk.bytesRead);
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      if (!earlier) yield Buffer.concat([...begun, rest.subarray(0, end)]).toString();
      earlier = false;
      begun = [];
      rest = rest.subarray(end + 1);
    }
    begun.push(rest);
  }
}
