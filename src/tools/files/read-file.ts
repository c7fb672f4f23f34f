import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool } from '../tool.js';
import { resolveExisting } from './confine.js';
import { quote } from './fs-error.js';
import { lineWindow } from './line-window.js';
import { withFile } from './open-file.js';
import type { FileToolSettings } from './options.js';
import { formatCount } from '../../core/text/count.js';
import { chunksOf, isBinary, readableSize } from './text.js';

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
    input: z.object({
      path: z.string().min(1).describe('path from the root folder, such as "src/index.ts"'),
      offset: z.int().min(1).default(1).describe('first line, from 1'),
      limit: z.int().min(1).max(MAX_LINES).default(MAX_LINES).describe('number of lines'),
    }),
    describe: ({ path, offset }) => `read_file ${path}${offset > 1 ? ` from line ${offset}` : ''}`,
    execute: async ({ path, offset, limit }, { signal }) => {
      const place = await resolveExisting(settings.root, path);
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
