import { chmod, readFile, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { toolContext } from '../../../src/testing.js';
import { toToolDefinition } from '../../../src/tools/tool.js';
import { fileTools } from '../../../src/tools/files/file-tools.js';
import { temporaryName } from '../../../src/tools/files/names.js';
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
    const place = await yard({ allowWrite: ['run.sh'] });
    await place.put({ 'run.sh': 'a much longer script than before' });
    await chmod(path.join(place.root, 'run.sh'), 0o777);
    await place.call('write_file', { path: 'run.sh', content: 'short' });
    expect(await readFile(path.join(place.root, 'run.sh'), 'utf8')).toBe('short');
    expect((await stat(path.join(place.root, 'run.sh'))).mode & 0o777).toBe(0o777);
  });

  it('is idempotent: writing again gives the same file and the same answer', async () => {
    const place = await yard();
    expect(
      toToolDefinition(toolNamed(fileTools({ root: '.', write: true }), 'write_file')).effect,
    ).toBe('keyed');
    const input = { path: 'a.txt', content: 'text\n' };
    const first = await place.call('write_file', input);
    const { call } = toolContext({ call: { attempt: 2 } });
    const again = await place.call('write_file', input, { call });
    expect(again).toBe(first);
    expect(await readdir(place.root)).toEqual(['a.txt']);
  });

  it('removes what earlier attempts left behind, and nothing else', async () => {
    const place = await yard();
    const { call } = toolContext({ call: { attempt: 3 } });
    const own = { idempotencyKey: 'key', call };
    const other = { idempotencyKey: 'another key', call };
    await place.put({ [temporaryName(own, 1)]: 'ha', [temporaryName(own, 2)]: 'half' });
    await place.put({ [temporaryName(other, 1)]: 'still being written' });
    await place.call('write_file', { path: 'a.txt', content: 'text' }, own);
    expect(await readdir(place.root)).toEqual([temporaryName(other, 1), 'a.txt']);
  });

  it('hides half-written files from the other tools', async () => {
    const place = await yard();
    const { call } = toolContext();
    await place.put({ [temporaryName({ idempotencyKey: 'key', call }, 1)]: 'half' });
    expect(await place.call('list_files', {})).toBe('.: 0 folders, 0 files (1 level)');
    expect(await place.call('search_text', { query: 'half' })).toContain('0 files searched');
  });

  it.each(['.git/hooks/pre-commit', '.GIT/config', 'node_modules/x/index.js', 'sub/.perdure/x'])(
    'writes nothing to %s',
    async (requested) => {
      const place = await yard();
      await place.put({ '.git/config': '' });
      const error = await place.failure('write_file', { path: requested, content: 'x' });
      expect(error.name).toBe('ToolError');
      expect(error.message).toContain('nothing is written into');
      expect((await readdir(place.root)).toSorted()).toEqual(['.git']);
    },
  );

  it.each([
    ['.', 'is outside the folder'],
    ['src/', 'names a folder; name a file in it'],
    ['notes.md', 'is a folder; name a file in it'],
    ['a.txt/b.txt', 'is not a folder, or a part of its path is a file'],
  ])('does not accept %j as a file', async (requested, expected) => {
    const place = await yard();
    await place.put({ 'src/index.ts': '', 'notes.md/a.txt': '', 'a.txt': '' });
    const error = await place.failure('write_file', { path: requested, content: 'x' });
    expect(error.name).toBe('ToolError');
    expect(error.message).toContain(expected);
  });

  it('refuses content above the limit, naming it', async () => {
    const place = await yard({ maxFileBytes: 10 });
    const error = await place.failure('write_file', { path: 'a.txt', content: 'é'.repeat(6) });
    expect(error.message).toContain(
      'content: expected at most 10 bytes, got 12; write several files',
    );
    expect(await readdir(place.root)).toEqual([]);
  });

  it('writes nothing once it is canceled', async () => {
    const place = await yard();
    await place.put({ 'a.txt': 'before' });
    const input = { path: 'a.txt', content: 'after' };
    const error = await place.failure('write_file', input, { signal: AbortSignal.abort() });
    expect(error.name).toBe('AbortError');
    expect(await readFile(path.join(place.root, 'a.txt'), 'utf8')).toBe('before');
  });
});
