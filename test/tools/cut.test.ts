import { wellFormed } from '../../src/core/text/text.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BlobStore } from '../../src/storage/blob-store.js';
import { fileBlobStore } from '../../src/storage/file-stores.js';
import { cutText, fitText } from '../../src/tools/result/normalize.js';
import { readResultTool } from '../../src/tools/built-in/default-tools.js';
import { headBytes, tailBytes } from '../../src/tools/result/plain.js';
import { callFailure, callTool, temporaryFolder } from './support.js';

const unicode = fc.string({ unit: 'grapheme', maxLength: 200 });

describe('headBytes and tailBytes', () => {
  it('take the longest part of whole characters that fits', () => {
    fc.assert(
      fc.property(unicode, fc.nat({ max: 300 }), (text, size) => {
        const head = headBytes(text, size);
        const tail = tailBytes(text, size);
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
        for (const part of [head, tail]) {
          expect(wellFormed(part)).toBe(part);
          expect(Buffer.byteLength(part)).toBeLessThanOrEqual(size);
          const isWhole = part.length === text.length;
          expect(isWhole || Buffer.byteLength(part) > size - 4).toBe(true);
        }
      }),
    );
  });
});

describe('fitText', () => {
  it('returns text of the permitted size unchanged', async () => {
    const store = fileBlobStore(await temporaryFolder());
    const text = 'é'.repeat(32 * 1024);
    expect(await fitText(text, store)).toEqual({ text });
  });

  it('stores larger text whole and shows its head and tail', async () => {
    const store = fileBlobStore(await temporaryFolder());
    const text = `first ${'é'.repeat(1_500_000)} last`;
    const fitted = await fitText(text, store);
    expect(fitted.blob?.bytes).toBe(3_000_011);
    expect(await store.get({ sha256: fitted.blob?.sha256 ?? '' })).toBe(text);
    expect(Buffer.byteLength(fitted.text)).toBeLessThanOrEqual(16 * 1024);
    expect(fitted.text.startsWith('first é')).toBe(true);
    expect(fitted.text.endsWith('é last')).toBe(true);
    expect(fitted.text).toMatch(
      /\n\[… 2984652 of 3000011 bytes omitted; read on with read_result\(\{"ref":"[0-9a-f]{64}","offset":11264\}\) …\]\n/,
    );
  });

  it('respects a smaller size', async () => {
    const store = fileBlobStore(await temporaryFolder());
    const { text, blob } = await fitText('x'.repeat(10_000), store, { maxBytes: 1_000 });
    expect(blob?.bytes).toBe(10_000);
    expect(text.replace(/\n\[.*\]\n/, '')).toHaveLength(1_000);
  });

  it('rejects if the text cannot be stored, so that it is not reported', async () => {
    const failing: BlobStore = {
      put: () => Promise.reject(new Error('disk full')),
      get: () => Promise.reject(new Error('nothing here')),
    };
    await expect(fitText('x'.repeat(70_000), failing)).rejects.toThrow('disk full');
  });
});

describe('cutText', () => {
  it('never splits a character and omits exactly what it states', () => {
    fc.assert(
      fc.property(unicode, fc.integer({ min: 8, max: 60 }), (text, keepBytes) => {
        const bytes = Buffer.byteLength(text);
        fc.pre(bytes > keepBytes);
        const cut = cutText(text, { ref: { sha256: 'a'.repeat(64), bytes }, keepBytes });
        const [, head = '', omitted, offset, tail = ''] =
          /^(.*)\n\[… (\d+) of \d+ bytes omitted; .*"offset":(\d+)\}\) …\]\n(.*)$/s.exec(cut) ?? [];
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
        expect(wellFormed(cut)).toBe(cut);
        expect(Buffer.byteLength(head)).toBe(Number(offset));
        expect(Buffer.byteLength(head) + Buffer.byteLength(tail) + Number(omitted)).toBe(bytes);
      }),
    );
  });
});

describe('read_result', () => {
  it('pages through the whole text, each byte once', async () => {
    const store = fileBlobStore(await temporaryFolder());
    const tool = readResultTool(store);
    const text = Array.from({ length: 9_000 }, (_, index) => `${index} € 🙂\n`).join('');
    const { sha256, bytes } = await store.put(text);
    let read = '';
    let pages = 0;
    for (let offset: number | undefined = 0; offset !== undefined; pages += 1) {
      const page = await callTool(tool, { ref: sha256, offset });
      const end = page.indexOf('\n');
      read += page.slice(end + 1);
      expect(page).toContain(` of ${bytes}; `);
      const next = /; next offset (\d+)\]$/.exec(page.slice(0, end))?.[1];
      expect(Buffer.byteLength(page)).toBeLessThan(33 * 1024);
      offset = next === undefined ? undefined : Number(next);
    }
    expect(pages).toBe(Math.ceil(bytes / 32_768));
    expect(read).toBe(text);
  });

  it('moves an offset inside a character back to its start', async () => {
    const store = fileBlobStore(await temporaryFolder());
    const { sha256 } = await store.put('a€🙂b');
    const tool = readResultTool(store);
    expect(await callTool(tool, { ref: sha256, offset: 3, length: 3 })).toBe(
      '[bytes 1 to 4 of 9; next offset 4]\n€',
    );
    expect(await callTool(tool, { ref: sha256, offset: 4, length: 1 })).toBe(
      '[bytes 4 to 8 of 9; next offset 8]\n🙂',
    );
    expect(await callTool(tool, { ref: sha256, offset: 500 })).toBe(
      '[bytes 9 to 9 of 9; the end]\n',
    );
  });

  it('reports an invalid reference to the model at once', async () => {
    const tool = readResultTool(fileBlobStore(await temporaryFolder()));
    const error = await callFailure(tool, { ref: '../../etc/passwd' });
    expect(error.name).toBe('ToolError');
    expect(error.message).toContain('"../../etc/passwd" is not a blob reference');
  });

  it('retries for a missing text', async () => {
    const tool = readResultTool(fileBlobStore(await temporaryFolder()));
    const error = await callFailure(tool, { ref: 'a'.repeat(64) });
    expect(error.name).toBe('BlobError');
  });

  it('refuses pages larger than 32 KiB and offsets below 0', async () => {
    const tool = readResultTool(fileBlobStore(await temporaryFolder()));
    expect((await callFailure(tool, { ref: 'x', length: 40_000 })).message).toContain('length: ');
    expect((await callFailure(tool, { ref: 'x', offset: -1 })).message).toContain('offset: ');
  });
});
