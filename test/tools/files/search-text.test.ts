import { truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { yard } from './support.js';

describe('search_text', () => {
  const project = {
    'README.md': '# Agents\nAgents are durable.\n',
    'src/a.ts': 'export const agent = 1;\r\n// a.b\n',
    'src/deep/b.ts': '\tconst Agent = "agent";\n',
    'node_modules/x.js': 'agent',
    '.git/config': 'agent',
    'logo.png': Buffer.from([0, 1, 2, ...Buffer.from('agent')]),
  };

  it('finds text as it is written, and states what was searched and what was not', async () => {
    const place = await yard();
    await place.put(project);
    expect((await place.call('search_text', { query: 'agent' })).split('\n')).toEqual([
      '2 matches in 2 files (3 files searched)',
      'src/a.ts:1: export const agent = 1;',
      'src/deep/b.ts:1: const Agent = "agent";',
      '[1 binary file not searched]',
      '[not entered: .git, node_modules]',
    ]);
    const dots = await place.call('search_text', { query: 'a.b', path: 'src' });
    expect(dots).toBe('1 match in 1 file (2 files searched)\nsrc/a.ts:2: // a.b');
  });

  it('ignores case, and searches one file or one kind of files on request', async () => {
    const place = await yard();
    await place.put(project);
    const input = { query: 'AGENT', ignore_case: true };
    expect(await place.call('search_text', { ...input, path: 'README.md' })).toBe(
      '2 matches in 1 file (1 file searched)\nREADME.md:1: # Agents\nREADME.md:2: Agents are durable.',
    );
    expect(await place.call('search_text', { ...input, pattern: '*.md' })).toContain(
      '2 matches in 1 file (1 file searched)',
    );
  });

  it('uses a regular expression on request', async () => {
    const place = await yard();
    await place.put(project);
    const result = await place.call('search_text', { query: '^export (const|let)', regex: true });
    expect(result).toContain('src/a.ts:1: export const agent');
    expect(
      await place.call('search_text', { query: '^', regex: true, path: 'README.md' }),
    ).toContain('2 matches');
    const folded = { query: 'EXPORT', regex: true, ignore_case: true };
    expect(await place.call('search_text', folded)).toContain('1 match in 1 file');
  });

  it('names the fault of a regular expression', async () => {
    const place = await yard();
    const error = await place.failure('search_text', { query: '(', regex: true });
    expect(error.name).toBe('ToolError');
    expect(error.message).toContain('Invalid regular expression');
    expect(error.message).toContain('omit `regex`');
  });

  it.each(['(a+)+$', '(a|a)*$', '(.*a){25}$', '^(([a-z])+.)+[A-Z]([a-z])+$'])(
    'ends a regular expression that would run endlessly: %s',
    async (query) => {
      const place = await yard();
      await place.put({ 'a.txt': `${'a'.repeat(60)}!\n` });
      const error = await place.failure('search_text', { query, regex: true });
      expect(error.name).toBe('ToolError');
      expect(error.message).toContain(`${JSON.stringify(query)} takes too long`);
    },
  );

  it('shows 100 matches and counts them all', async () => {
    const place = await yard();
    await place.put({ 'a.txt': 'hit\n'.repeat(70), 'b.txt': 'hit\n'.repeat(70) });
    const lines = (await place.call('search_text', { query: 'hit' })).split('\n');
    expect(lines[0]).toBe('140 matches in 2 files (2 files searched)');
    expect(lines).toHaveLength(102);
    expect(lines[101]).toBe('[40 more matches not shown; narrow with path or pattern]');
  });

  it('shows the part of a long line that contains the match', async () => {
    const place = await yard();
    await place.put({ 'min.js': `${'🙂'.repeat(5_000)}needle${'y'.repeat(5_000)}` });
    const [, line = ''] = (await place.call('search_text', { query: 'needle' })).split('\n');
    expect(line).toMatch(/^min\.js:1: …🙂+needley+…$/u);
    expect(line.length).toBeLessThan(250);
  });

  it('names files that are too large', async () => {
    const place = await yard();
    await place.put({ 'a.txt': 'needle' });
    await writeFile(path.join(place.root, 'huge.log'), 'needle');
    await truncate(path.join(place.root, 'huge.log'), 5e9);
    expect((await place.call('search_text', { query: 'needle' })).split('\n')).toEqual([
      '1 match in 1 file (1 file searched)',
      'a.txt:1: needle',
      '[too large to search: huge.log (5.0 GB)]',
    ]);
  });

  it('reports that a query of several lines finds nothing', async () => {
    const place = await yard();
    const error = await place.failure('search_text', { query: 'a\nb' });
    expect(error.message).toContain('the search goes line by line');
  });

  it('stops when it is canceled', async () => {
    const place = await yard();
    await place.put(project);
    const cancel = { signal: AbortSignal.abort() };
    expect((await place.failure('search_text', { query: 'x' }, cancel)).name).toBe('AbortError');
    const named = { query: 'x', path: 'README.md' };
    expect((await place.failure('search_text', named, cancel)).name).toBe('AbortError');
  });
});
