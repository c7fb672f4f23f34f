import { z } from 'zod';
import { BlobError } from '../../storage/blob-store.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { isOwned } from '../../storage/owned-text.js';
import { readBlobPage } from './blob-page.js';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool } from '../tool.js';

const PAGE_BYTES = 32 * 1024;

/** The built-in tool that pages through text which was too large to be shown. */
export function readResultTool(store: BlobStore): Tool {
  return defineTool({
    name: 'read_result',
    description:
      'Reads a part of a text that was too large to show in full. `ref` and `offset` stand where ' +
      'the text was cut; offsets and lengths are bytes.',
    effect: 'read',
    input: z.object({
      ref: z.string().describe('the 64 hex digits that stand in the note where the text was cut'),
      offset: z.int().min(0).default(0).describe('first byte, from 0'),
      length: z.int().min(1).max(PAGE_BYTES).default(PAGE_BYTES).describe('bytes, at most 32768'),
    }),
    describe: ({ ref, offset }) => `read_result ${ref.slice(0, 8)}… from byte ${offset}`,
    execute: async ({ ref, offset, length }) => {
      const page = await readBlobPage(results(store), { sha256: ref }, { offset, length }).catch(
        explain,
      );
      const end = page.nextOffset ?? page.totalBytes;
      const range = `[bytes ${page.offset} to ${end} of ${page.totalBytes}; `;
      const next = page.nextOffset === undefined ? 'the end]' : `next offset ${page.nextOffset}]`;
      return `${range}${next}\n${page.text}`;
    },
  });
}

/** The store without attachments and contexts: a model has no other way to those of another run. */
function results(store: BlobStore): Pick<BlobStore, 'get'> {
  return {
    async get(ref) {
      const text = await store.get(ref);
      if (!isOwned(text)) return text;
      throw new ToolError(
        'ref: this is no result of a tool; copy it from the note where one was cut',
      );
    },
  };
}

/** A wrong reference is the model's error; storage that fails is worth another attempt. */
function explain(error: unknown): never {
  if (error instanceof BlobError && error.kind === 'invalid') {
    throw new ToolError(`${error.message}; copy it from the note where the text was cut`);
  }
  throw error;
}
