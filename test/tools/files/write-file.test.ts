import { chmod, mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { toToolDefinition } from '../../../src/tools/tool-definition.js';
import { fileTools } from '../../../src/tools/files/file-tools.js';
import { toolNamed } from '../support.js';
import { yard } from './support.js';

describe('write_file', () => {
  it('creates a file and its folders', async () => {
    const place = await yard();
    const content = 'grüße\nbye';
    expect(await place.call('write_file', { path: 'a/b/c.txt', content })).toBe(
      'wrote a/b/c.txt: 11 bytes, 2 lines',
    );
    expect(await readFile(path.join(place.root, 'a/b/c.txt'), 'utf8')).toBe(content);
    expect(await readdir(path.join(place.root, 'a/b'))).toEqual(['c.txt']);
    expect(await place.call('write_file', { path: 'empty.txt', content: '' })).toBe(
      'wrote empty.txt: 0 bytes, 0 lines',
    );
  });

  it('replaces a file as a whole and keeps its permissions', async () => {
    const place = await yard();
    await place.fill({ 'run.sh': 'a much longer script than before' });
    await chmod(path.join(place.root, 'run.sh'), 0o750);
    await place.call('write_file', { path: 'run.sh', content: 'short' });
    expect(await readFile(path.join(place.root, 'run.sh'), 'utf8')).toBe('short');
    expect((await stat(path.join(place.root, 'run.sh'))).mode & 0o777).toBe(0o750);
  });

  it('is keyed: writing again gives the same file and the same answer', async () => {
    const place = await yard();
    expect(toToolDefinition(toolNamed(fileTools({ root: '.' }), 'write_file')).effect).toBe(
      'keyed',
    );
    const input = { path: 'a.txt', content: 'text\n' };
    const first = await place.call('write_file', input);
    const again = await place.call('write_file', input, { call: { id: 'call_1_1_0', attempt: 2 } });
    expect(again).toBe(first);
    expect(await readdir(place.root)).toEqual(['a.txt']);
  });

  it('clears away what an earlier attempt left behind, and never shows it', async () => {
    const place = await yard();
    const blocked = path.join(place.root, 'a.txt');
    await mkdir(path.join(blocked, 'inside'), { recursive: true });
    const input = { path: 'a.txt', content: 'text' };
    expect((await place.failure('write_file', input)).message).toBe(
      '"a.txt" is a folder; name a file in it',
    );
    expect(await readdir(place.root)).toEqual(['a.txt']);

    // What `kill -9` leaves: found by making the same attempt write without ever renaming.
    const leftover = path.join(place.root, '.perdure-left-1.tmp');
    await writeFile(leftover, 'half');
    expect(await place.call('list_files', {})).toBe('.: 1 folder, 0 files (1 level)\na.txt/');
    expect(await place.call('search_text', { query: 'half' })).toContain('0 matches');
  });

  it.each(['.git/hooks/pre-commit', '.GIT/config', 'node_modules/x/index.js', 'sub/.perdure/x'])(
    'writes nothing to %s',
    async (asked) => {
      const place = await yard();
      await place.fill({ '.git/config': '' });
      const error = await place.failure('write_file', { path: asked, content: 'x' });
      expect(error.name).toBe('ToolError');
      expect(error.message).toContain('nothing is written into');
      expect((await readdir(place.root)).toSorted()).toEqual(['.git']);
    },
  );

  it.each([
    ['.', 'is outside the folder'],
    ['src/', 'names a folder; name a file in it'],
    ['src', 'is a folder; name a file in it'],
    ['a.txt/b.txt', 'is not a folder, or a part of its path is a file'],
  ])('does not take %j for a file', async (asked, expected) => {
    const place = await yard();
    await place.fill({ 'src/index.ts': '', 'a.txt': '' });
    const error = await place.failure('write_file', { path: asked, content: 'x' });
    expect(error.name).toBe('ToolError');
    expect(error.message).toContain(expected);
  });

  it('refuses content above the limit, naming it', async () => {
    const place = await yard({ maxFileBytes: 10 });
    const error = await place.failure('write_file', { path: 'a.txt', content: 'é'.repeat(6) });
    expect(error.message).toContain('12 bytes, more than the 10 that a file may have here');
    expect(await readdir(place.root)).toEqual([]);
  });

  it('writes nothing once it is cancelled', async () => {
    const place = await yard();
    await place.fill({ 'a.txt': 'before' });
    const input = { path: 'a.txt', content: 'after' };
    const error = await place.failure('write_file', input, { signal: AbortSignal.abort() });
    expect(error.name).toBe('AbortError');
    expect(await readFile(path.join(place.root, 'a.txt'), 'utf8')).toBe('before');
  });
});
