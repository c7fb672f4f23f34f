import { truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lineWindow } from '../../../src/tools/files/read-write-file.js';
import { yard } from './support.js';

describe('read_file', () => {
  it('shows a file with its size and lines', async () => {
    const place = await yard();
    await place.put({ 'src/a.ts': 'const a = 1;\nconst ü = "🙂";\n' });
    expect(await place.call('read_file', { path: 'src/a.ts' })).toBe(
      'src/a.ts: 32 bytes, lines 1-2 of 2\nconst a = 1;\nconst ü = "🙂";\n',
    );
  });

  it('counts a last line without a newline, and none in an empty file', async () => {
    const place = await yard();
    await place.put({ 'a.txt': 'one\r\ntwo', 'empty.txt': '', 'blank.txt': '\n' });
    expect(await place.call('read_file', { path: 'a.txt' })).toBe(
      'a.txt: 8 bytes, lines 1-2 of 2\none\r\ntwo',
    );
    expect(await place.call('read_file', { path: 'empty.txt' })).toBe('empty.txt: 0 bytes, empty');
    expect(await place.call('read_file', { path: 'blank.txt' })).toBe(
      'blank.txt: 1 bytes, lines 1-1 of 1\n\n',
    );
  });

  it('shows a part, and states where to continue', async () => {
    const place = await yard();
    await place.put({ 'a.txt': 'one\ntwo\nthree\nfour' });
    expect(await place.call('read_file', { path: 'a.txt', offset: 2, limit: 2 })).toBe(
      'a.txt: 18 bytes, lines 2-3 of 4\ntwo\nthree\n[more: read_file with offset 4]',
    );
    expect(await place.call('read_file', { path: 'a.txt', offset: 4, limit: 2 })).toBe(
      'a.txt: 18 bytes, lines 4-4 of 4\nfour',
    );
  });

  it('reports the number of lines if the offset is beyond them', async () => {
    const place = await yard();
    await place.put({ 'a.txt': 'one\ntwo\n' });
    const error = await place.failure('read_file', { path: 'a.txt', offset: 3 });
    expect(error.name).toBe('ToolError');
    expect(error.message).toBe(
      '"a.txt" has 2 lines, so line 3 does not exist; use an offset from 1 to 2',
    );
  });

  it('returns a long file in pages that together are the file', async () => {
    const place = await yard();
    const text = Array.from({ length: 6_000 }, (_, index) => `line ${index} of ü\n`).join('');
    await place.put({ 'long.txt': text });
    let read = '';
    let pages = 0;
    for (let offset = 1; offset > 0; pages += 1) {
      const page = await place.call('read_file', { path: 'long.txt', offset });
      expect(Buffer.byteLength(page)).toBeLessThan(50 * 1024);
      const more = /\n\[more: read_file with offset (\d+)\]$/.exec(page);
      const body = page.slice(page.indexOf('\n') + 1, more ? more.index + 1 : undefined);
      read += body;
      offset = Number(more?.[1] ?? 0);
    }
    expect(read).toBe(text);
    expect(pages).toBe(3);
  });

  it('shows one line that is longer than a page, and cuts it at 1 MiB', async () => {
    const place = await yard();
    await place.put({
      'min.js': `${'x'.repeat(200_000)}\nend\n`,
      'huge.js': `a${'é'.repeat(700_000)}`,
    });
    const whole = await place.call('read_file', { path: 'min.js' });
    expect(whole).toContain('x'.repeat(200_000));
    expect(whole.endsWith('\n[more: read_file with offset 2]')).toBe(true);
    const cut = await place.call('read_file', { path: 'huge.js' });
    expect(cut.endsWith('é\n[line 1 continues for 351426 bytes that are not shown]')).toBe(true);
    expect(cut).not.toContain('\uFFFD');
  });

  it('reads a file of many gigabytes in pages, without counting to its end', async () => {
    const place = await yard();
    const file = path.join(place.root, 'huge.log');
    await writeFile(file, `first\nsecond\n${'third\n'.repeat(2_000)}`);
    await truncate(file, 3e12);
    const page = await place.call('read_file', { path: 'huge.log', limit: 2 });
    expect(page).toBe(
      'huge.log: 3000000000000 bytes, lines 1-2 (not counted to the end: 3.0 TB)\n' +
        'first\nsecond\n[more: read_file with offset 3]',
    );
  });

  it('names the size limit above which lines are not counted', async () => {
    const place = await yard({ maxFileBytes: 10 });
    await place.put({ 'a.txt': 'one\ntwo\nthree\n' });
    expect(await place.call('read_file', { path: 'a.txt', limit: 1 })).toContain('not counted');
    expect(await place.call('read_file', { path: 'a.txt' })).toContain('lines 1-3 of 3');
  });

  it.each([
    ['a NUL', Buffer.from('text\0text')],
    ['invalid UTF-8', Buffer.from([0x89, 0x50, 0x4e, 0x47])],
    ['Latin-1', Buffer.from('grün', 'latin1')],
  ])('names a binary file with its size: %s', async (_label, bytes) => {
    const place = await yard();
    await place.put({ 'logo.png': bytes });
    expect(await place.call('read_file', { path: 'logo.png' })).toBe(
      `logo.png: binary file, ${bytes.length} bytes; it is not UTF-8 text, so it is not shown`,
    );
  });

  it('does not mistake text for binary because a character crosses the border of a sample', async () => {
    const place = await yard();
    await place.put({ 'a.txt': `${'x'.repeat(8_191)}€\n` });
    expect(await place.call('read_file', { path: 'a.txt' })).toContain('x€');
  });

  it('reports that a folder is not a file', async () => {
    const place = await yard();
    await place.put({ 'src/a.ts': '' });
    const error = await place.failure('read_file', { path: 'src' });
    expect(error.message).toBe('"src" is a folder; name a file in it');
  });

  it('stops when it is canceled', async () => {
    const place = await yard();
    await place.put({ 'a.txt': 'x' });
    const error = await place.failure(
      'read_file',
      { path: 'a.txt' },
      { signal: AbortSignal.abort() },
    );
    expect(error.name).toBe('AbortError');
  });
});

describe('lineWindow', () => {
  it('takes the same lines however the bytes are split', () => {
    const text = fc.array(fc.constantFrom('a', 'bb', '\n', 'é'), { maxLength: 60 });
    const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 });
    fc.assert(
      fc.property(
        text,
        sizes,
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 8 }),
        (parts, chunkSizes, from, maxLines) => {
          const bytes = Buffer.from(parts.join(''));
          const window = lineWindow({ from, maxLines, maxBytes: 1e6, maxLineBytes: 1e6 });
          for (let at = 0, index = 0; at < bytes.length; index += 1) {
            const size = chunkSizes[index % chunkSizes.length] ?? 1;
            window.add(bytes.subarray(at, at + size));
            at += size;
          }
          const lines = bytes.toString().match(/[^\n]*\n|[^\n]+$/g) ?? [];
          const expected = lines.slice(from - 1, from - 1 + maxLines);
          expect(window.result()).toMatchObject({
            lines: expected.length,
            total: lines.length,
            omittedBytes: 0,
          });
          expect(window.result().bytes.toString()).toBe(expected.join(''));
        },
      ),
    );
  });

  it('never starts a line that does not fit the page', () => {
    const window = lineWindow({ from: 1, maxLines: 10, maxBytes: 6, maxLineBytes: 100 });
    window.add(Buffer.from('aa\nbb\ncc\n'));
    expect(window.result().bytes.toString()).toBe('aa\nbb\n');
    expect(window.result().total).toBe(3);
  });
});
