import { type Stats, constants } from 'node:fs';
import { lstat, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { formatCount } from '../../core/text/text.js';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../errors.js';
import { isContinuation } from '../result/plain.js';
import type { Tool, ToolContext } from '../tool.js';
import {
  type ConfinedPath,
  type OpenFolder,
  fileError,
  quote,
  resolveExisting,
  resolveTarget,
  withFolders,
} from './confine.js';
import { temporaryName } from './names.js';
import {
  type FileToolSettings,
  chunksOf,
  isBinary,
  readableSize,
  refuseOther,
  withFile,
} from './open-file.js';

const NEWLINE = 10;

/** The lines that a window includes. */
interface WindowLimits {
  /** The first line, from 1. */
  readonly from: number;
  readonly maxLines: number;
  /**
   * The size after which no further line is included; the first line is included even if it is
   * longer.
   */
  readonly maxBytes: number;
  /** The maximum number of bytes kept of the first line. */
  readonly maxLineBytes: number;
}

/** Some lines of a text. */
interface LineWindow {
  readonly bytes: Buffer;
  /** The number of lines in the window. */
  readonly lines: number;
  /** The number of lines in all chunks. */
  readonly total: number;
  /** The bytes that are missing from the only line of the window. */
  readonly omittedBytes: number;
}

/**
 * Collects some whole lines of a stream of bytes and counts all lines, including a last one without
 * a newline. If the total does not matter, add chunks until `isFull`.
 */
export function lineWindow(limits: WindowLimits): {
  add(chunk: Buffer): void;
  isFull(): boolean;
  result(): LineWindow;
} {
  const included: Buffer[] = [];
  let current: Buffer[] = [];
  let keptBytes = 0;
  let currentBytes = 0;
  let lines = 0;
  let line = 1;
  let isMidLine = false;
  let isFull = false;

  const takePart = (part: Buffer): void => {
    currentBytes += part.length;
    if (lines > 0 && keptBytes + currentBytes > limits.maxBytes) isFull = true;
    // One extra byte shows whether a character continues there.
    else if (currentBytes - part.length <= limits.maxLineBytes) current.push(part);
  };
  const endLine = (): void => {
    if (isFull) return;
    included.push(...current);
    keptBytes += currentBytes;
    lines += 1;
    current = [];
    currentBytes = 0;
    isFull = lines >= limits.maxLines;
  };
  return {
    add: (chunk) => {
      for (let at = 0; at < chunk.length;) {
        const newline = chunk.indexOf(NEWLINE, at);
        const end = newline === -1 ? chunk.length : newline + 1;
        const isInWindow = line >= limits.from && !isFull;
        if (isInWindow) takePart(chunk.subarray(at, end));
        isMidLine = newline === -1;
        if (!isMidLine) {
          if (isInWindow) endLine();
          line += 1;
        }
        at = end;
      }
    },
    isFull: () => isFull,
    result: () => {
      if (currentBytes > 0) endLine();
      const all = Buffer.concat(included);
      const bytes = lines === 1 ? characterHead(all, limits.maxLineBytes) : all;
      return {
        bytes,
        lines,
        total: isMidLine ? line : line - 1,
        omittedBytes: keptBytes - bytes.length,
      };
    },
  };
}

/** Returns at most `maxBytes` from the start, cut between characters. */
function characterHead(bytes: Buffer, maxBytes: number): Buffer {
  let end = Math.min(maxBytes, bytes.length);
  while (end > 0 && isContinuation(bytes[end])) end -= 1;
  return bytes.subarray(0, end);
}

const MAX_LINES = 2_000;
const PAGE_BYTES = 48 * 1024;
const MAX_LINE_BYTES = 1024 * 1024;

/** Makes the tool that reads a text file by lines, in pages of at most 48 KiB. */
export function readFileTool(settings: FileToolSettings): Tool {
  return defineTool({
    name: 'read_file',
    description:
      'Reads a text file. The first line of the result names the file, its size, and the lines ' +
      'shown; long files come in pages, and the last line then says where to continue.',
    effect: 'read',
    inline: true,
    input: z.object({
      path: z.string().min(1).describe('path from the root folder, such as "src/index.ts"'),
      offset: z.int().min(1).default(1).describe('first line, from 1'),
      limit: z.int().min(1).max(MAX_LINES).default(MAX_LINES).describe('number of lines'),
    }),
    describe: ({ path: file, offset }) =>
      `read_file ${file}${offset > 1 ? ` from line ${offset}` : ''}`,
    execute: async ({ path: file, offset, limit }, { signal }) => {
      const place = await resolveExisting(settings.root, file);
      settings.guard.refuseReading(place);
      return withFile(place, async (handle, sizeBytes) => {
        const page = lineWindow({
          from: offset,
          maxLines: limit,
          maxBytes: PAGE_BYTES,
          maxLineBytes: MAX_LINE_BYTES,
        });
        const isCounted = sizeBytes <= settings.maxFileBytes;
        let isFirst = true;
        for await (const chunk of chunksOf(handle, signal)) {
          if (isFirst && isBinary(chunk)) return binaryNote(place.relative, sizeBytes);
          isFirst = false;
          page.add(chunk);
          if (!isCounted && page.isFull()) break;
        }
        const isWhole = isCounted || !page.isFull();
        return render({ name: place.relative, sizeBytes, offset, isWhole, page: page.result() });
      });
    },
  });
}

function binaryNote(name: string, sizeBytes: number): string {
  return `${name}: binary file, ${sizeBytes} bytes; it is not UTF-8 text, so it is not shown`;
}

function render({
  name,
  sizeBytes,
  offset,
  isWhole,
  page,
}: {
  readonly name: string;
  readonly sizeBytes: number;
  readonly offset: number;
  /** Whether the file was read to its end, so that the total is known. */
  readonly isWhole: boolean;
  readonly page: ReturnType<ReturnType<typeof lineWindow>['result']>;
}): string {
  if (isWhole && page.total === 0) return `${name}: 0 bytes, empty`;
  if (page.lines === 0) {
    throw new ToolError(
      `${quote(name)} has ${formatCount(page.total, 'line')}, so line ${offset} does not exist; use an offset from 1 to ${page.total}`,
    );
  }
  const last = offset + page.lines - 1;
  const total = isWhole
    ? `of ${page.total}`
    : `(not counted to the end: ${readableSize(sizeBytes)})`;
  const text = page.bytes.toString();
  const notes: string[] = [];
  if (page.omittedBytes > 0) {
    notes.push(`line ${offset} continues for ${page.omittedBytes} bytes that are not shown`);
  }
  if (!isWhole || last < page.total) notes.push(`more: read_file with offset ${last + 1}`);
  const end = notes.length === 0 ? '' : `${text.endsWith('\n') ? '' : '\n'}[${notes.join('; ')}]`;
  return `${name}: ${sizeBytes} bytes, lines ${offset}-${last} ${total}\n${text}${end}`;
}

/**
 * Makes the tool that writes a whole file. It is idempotent, so a call interrupted by a crash is
 * repeated.
 */
export function writeFileTool(settings: FileToolSettings): Tool {
  return defineTool({
    name: 'write_file',
    description:
      'Writes a whole text file and replaces its old content; folders are created as needed. ' +
      'Only documents and data are written (.md, .txt, .csv, .json, …), not code or settings of tools.',
    effect: 'keyed',
    input: z.object({
      path: z.string().min(1).describe('path from the root folder, such as "notes/today.md"'),
      content: z.string().describe('the whole new content'),
    }),
    describe: ({ path: requested, content }) =>
      `write_file ${requested} (${readableSize(Buffer.byteLength(content))})`,
    execute: async ({ path: requested, content }, context) => {
      const bytes = Buffer.from(content);
      if (bytes.length > settings.maxFileBytes) {
        throw new ToolError(
          `content: expected at most ${settings.maxFileBytes} bytes, got ${bytes.length}; write several files`,
        );
      }
      const place = await targetOf(settings, requested);
      await replaceFile(settings, place, { bytes, context }).catch((error: unknown) => {
        throw fileError(requested, error);
      });
      const lines = content.split('\n').length - (content.endsWith('\n') || content === '' ? 1 : 0);
      return `wrote ${place.relative}: ${formatCount(bytes.length, 'byte')}, ${formatCount(lines, 'line')}`;
    },
  });
}

async function targetOf(settings: FileToolSettings, requested: string): Promise<ConfinedPath> {
  const place = await resolveTarget(settings.root, requested);
  if (requested.endsWith('/'))
    throw new ToolError(`${quote(requested)} names a folder; name a file in it`);
  settings.guard.refuseWriting(place);
  return place;
}

/**
 * Writes a temporary file, flushes, and renames it, so readers see either the old or the new file.
 */
async function replaceFile(
  { guard }: FileToolSettings,
  place: ConfinedPath,
  { bytes, context }: { readonly bytes: Buffer; readonly context: ToolContext },
): Promise<void> {
  await withFolders(place.root, async (folders) => {
    const folder = await folders.open(path.posix.dirname(place.relative), { create: true });
    const target = folder.at(path.posix.basename(place.relative));
    const before = await lstat(target).catch(() => undefined);
    if (before) refuseOther(place.requested, before);
    if (before && !guard.isAllowed(place)) refuseProgram(place.requested, before);
    await folder.verify();
    await removeLeftovers(folder, context);
    const name = temporaryName(context, context.call.attempt);
    context.signal.throwIfAborted();
    try {
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
      const handle = await open(
        folder.at(name),
        flags | (constants.O_NOFOLLOW ?? 0),
        before?.mode ?? 0o666,
      );
      try {
        await folder.verify(name, await handle.stat({ bigint: true }));
        await handle.writeFile(bytes);
        if (before) await handle.chmod(before.mode);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await folder.verify();
      await rename(folder.at(name), target);
    } catch (error) {
      await rm(folder.at(name), { force: true });
      throw error;
    }
  });
}

/** Throws a `ToolError` if the file is executable: it is a program, whatever its name. */
function refuseProgram(requested: string, stats: Stats): void {
  if (process.platform === 'win32' || (stats.mode & 0o111) === 0) return;
  throw new ToolError(
    `${quote(requested)} is not written: it is marked as executable. Choose another name, or ask a person to write it`,
  );
}

async function removeLeftovers(folder: OpenFolder, context: ToolContext): Promise<void> {
  for (let attempt = 1; attempt < context.call.attempt; attempt += 1) {
    await rm(folder.at(temporaryName(context, attempt)), { force: true });
  }
}
