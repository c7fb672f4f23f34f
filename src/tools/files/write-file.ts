import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { lstat, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool, ToolContext } from '../tool.js';
import { resolveTarget } from './confine.js';
import type { ConfinedPath } from './confine.js';
import { fileError, quote } from './fs-error.js';
import { refuseOther } from './open-file.js';
import { withFolders, type OpenFolder } from './open-folder.js';
import type { FileToolSettings } from './options.js';
import { formatCount } from '../../core/text/count.js';
import { readableSize } from './text.js';
import { temporaryName } from './temporary-name.js';

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
