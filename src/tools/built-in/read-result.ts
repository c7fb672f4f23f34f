import { z } from 'zod';
import { BlobError, type BlobStore } from '../../storage/blob-store.js';
import { isOwned, readOwned } from '../../storage/owned-text.js';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool } from '../tool.js';
import { readFor } from '../../storage/worker-store.js';
import type { BlobRef } from '../../core/transcript/messages.js';
import { isContinuation } from '../utf8.js';

const PAGE_BYTES = 32 * 1024;

/** Makes the built-in tool that pages through a text that was too large to show. */
export function readResultTool(store: BlobStore): Tool {
  return defineTool({
    name: 'read_result',
    description:
      'Reads a part of a text that was too large to show in full. The note where the text was cut ' +
      'has `ref` and `offset`; offsets and lengths are bytes.',
    effect: 'read',
    input: z.object({
      ref: z.string().describe('the 64 hex digits in the note where the text was cut'),
      offset: z.int().min(0).default(0).describe('first byte, from 0'),
      length: z.int().min(1).max(PAGE_BYTES).default(PAGE_BYTES).describe('bytes, at most 32768'),
    }),
    describe: ({ ref, offset }) => `read_result ${ref.slice(0, 8)}… from byte ${offset}`,
    execute: async ({ ref, offset, length }, { run }) => {
      const page = await readBlobPage(
        results(store, run.id),
        { sha256: ref },
        { offset, length },
      ).catch(explain);
      const end = page.nextOffset ?? page.totalBytes;
      const range = `[bytes ${page.offset} to ${end} of ${page.totalBytes}; `;
      const next = page.nextOffset === undefined ? 'the end]' : `next offset ${page.nextOffset}]`;
      return `${range}${next}\n${page.text}`;
    },
  });
}

/** Returns the store without message contents, so a model cannot read those of other runs. */
function results(store: BlobStore, run: string): Pick<BlobStore, 'get'> {
  return {
    async get(ref) {
      const text = await store.get(ref);
      if (!isOwned(text)) return text;
      const own = readOwned('artifact', run, text);
      if (own !== null) return own;
      throw new ToolError(
        'ref: expected the reference of a tool result; copy it from the note where one was cut',
      );
    },
  };
}

/** Converts a wrong reference to an error for the model; other store errors are retried. */
function explain(error: unknown): never {
  if (error instanceof BlobError && error.kind === 'invalid') {
    throw new ToolError(`${error.message}; copy it from the note where the text was cut`);
  }
  throw error;
}

/** A part of a stored text. All numbers are UTF-8 bytes of the whole text. */
interface BlobPage {
  readonly text: string;
  /** Where the page begins, never inside a character. */
  readonly offset: number;
  /** Where the next page begins; absent at the end. */
  readonly nextOffset?: number;
  readonly totalBytes: number;
}

/**
 * Reads at most `length` bytes from `offset`. Both ends move back to the start of a character, so
 * pages that follow `nextOffset` return each byte of the text once. A character larger than
 * `length` is returned whole.
 */
async function readBlobPage(
  store: Pick<BlobStore, 'get'>,
  ref: Pick<BlobRef, 'sha256'>,
  { offset, length }: { readonly offset: number; readonly length: number },
): Promise<BlobPage> {
  const bytes = Buffer.from(await readFor('a text that was too large to show', ref, store));
  const start = characterStart(bytes, Math.min(offset, bytes.length));
  const cut = characterStart(bytes, Math.min(start + length, bytes.length));
  const end = cut > start ? cut : characterEnd(bytes, start);
  return {
    text: bytes.toString('utf8', start, end),
    offset: start,
    ...(end < bytes.length && { nextOffset: end }),
    totalBytes: bytes.length,
  };
}

function characterStart(bytes: Buffer, position: number): number {
  let at = position;
  while (at > 0 && isContinuation(bytes[at])) at -= 1;
  return at;
}

function characterEnd(bytes: Buffer, position: number): number {
  let at = Math.min(position + 1, bytes.length);
  while (at < bytes.length && isContinuation(bytes[at])) at += 1;
  return at;
}
