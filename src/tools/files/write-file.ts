import { constants } from 'node:fs';
import { lstat, mkdir, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool, ToolContext } from '../tool.js';
import { resolveTarget } from './confine.js';
import type { Place } from './confine.js';
import { fileError, quote } from './fs-error.js';
import { refuseOther } from './open-file.js';
import type { FileToolSettings } from './options.js';
import { count, readableSize } from './text.js';
import { temporaryName } from './temporary-name.js';

/**
 * Writes a whole file. `keyed`: writing the same content again changes nothing, so a call that a crash
 * interrupted is simply made again.
 */
export function writeFileTool(settings: FileToolSettings): Tool {
  return defineTool({
    name: 'write_file',
    description:
      'Writes a text file as a whole, in place of what was there; folders are created as needed.',
    effect: 'keyed',
    input: z.object({
      path: z.string().min(1).describe('path from the root folder, such as "notes/today.md"'),
      content: z.string().describe('the whole new content'),
    }),
    describe: ({ path: asked, content }) =>
      `write_file ${asked} (${readableSize(Buffer.byteLength(content))})`,
    execute: async ({ path: asked, content }, context) => {
      const bytes = Buffer.from(content);
      if (bytes.length > settings.maxFileBytes) {
        throw new ToolError(
          `the content has ${bytes.length} bytes, more than the ${settings.maxFileBytes} that a file may have here; write several files`,
        );
      }
      const place = await targetOf(settings, asked);
      await replaceFile(place, bytes, context).catch((error: unknown) => {
        throw fileError(asked, error);
      });
      const lines = content.split('\n').length - (content.endsWith('\n') || content === '' ? 1 : 0);
      return `wrote ${place.relative}: ${count(bytes.length, 'byte')}, ${count(lines, 'line')}`;
    },
  });
}

async function targetOf(settings: FileToolSettings, asked: string): Promise<Place> {
  const place = await resolveTarget(settings.root, asked);
  if (asked.endsWith('/')) throw new ToolError(`${quote(asked)} names a folder; name a file in it`);
  const skipped = new Set([...settings.skip].map((name) => name.toLowerCase()));
  const guarded = place.relative.split('/').find((name) => skipped.has(name.toLowerCase()));
  if (guarded === undefined) return place;
  throw new ToolError(`${quote(asked)}: nothing is written into ${guarded}; choose another folder`);
}

/** Written beside its place, flushed, renamed: a reader, or a crash, finds the old or the new file. */
async function replaceFile(place: Place, bytes: Buffer, context: ToolContext): Promise<void> {
  const folder = path.dirname(place.real);
  await mkdir(folder, { recursive: true });
  const before = await lstat(place.real).catch(() => undefined);
  if (before) refuseOther(place.asked, before);
  await removeLeftovers(folder, context);
  const temporary = path.join(folder, temporaryName(context, context.call.attempt));
  context.signal.throwIfAborted();
  try {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
    const handle = await open(
      temporary,
      flags | (constants.O_NOFOLLOW ?? 0),
      before?.mode ?? 0o666,
    );
    try {
      await handle.writeFile(bytes);
      if (before) await handle.chmod(before.mode);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, place.real);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function removeLeftovers(folder: string, context: ToolContext): Promise<void> {
  for (let attempt = 1; attempt < context.call.attempt; attempt += 1) {
    await rm(path.join(folder, temporaryName(context, attempt)), { force: true });
  }
}
