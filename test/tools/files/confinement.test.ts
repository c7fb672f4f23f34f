import { mkdir, readFile, readdir, rename, symlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fileTools } from '../../../src/tools/files/file-tools.js';
import { callTool, toolNamed } from '../support.js';
import { makeFifo, yard } from './support.js';
import type { Yard } from './support.js';

const READERS = ['read_file', 'list_files', 'search_text'] as const;

function inputFor(name: string, requested: string): { readonly [key: string]: string } {
  if (name === 'search_text') return { path: requested, query: 'secret' };
  return name === 'write_file' ? { path: requested, content: 'overwritten' } : { path: requested };
}

/** Calls all four tools with the same path. */
async function failures(place: Yard, requested: string): Promise<Error[]> {
  const names = [...READERS, 'write_file'];
  return Promise.all(names.map((name) => place.failure(name, inputFor(name, requested))));
}

describe('the file tools', () => {
  it.each([
    '../outside/secret.txt',
    'a/../../outside/secret.txt',
    '/proc/version',
    '/',
    '..',
    '../rootless',
    '../../../../../../../../proc/version',
  ])('refuse %j, which leaves the root', async (requested) => {
    const place = await yard();
    for (const error of await failures(place, requested)) {
      expect(error.name).toBe('ToolError');
      expect(error.message).toContain(`${JSON.stringify(requested)} is outside the folder`);
      expect(error.message).toContain('give a path relative to it');
    }
  });

  it('refuse a folder next to the root whose name begins with that of the root', async () => {
    const place = await yard();
    await mkdir(`${place.root}-twin`);
    for (const error of await failures(place, `${place.root}-twin/x`)) {
      expect(error.message).toContain('is outside the folder');
    }
  });

  it('accept an absolute path inside the root, also below the configured name of the root', async () => {
    const place = await yard();
    await place.put({ 'src/a.txt': 'inside\n' });
    const requested = path.join(place.root, 'src/a.txt');
    expect(await place.call('read_file', { path: requested })).toContain('inside');

    const alias = `${place.root}-alias`;
    await symlink(place.root, alias);
    const reader = toolNamed(fileTools({ root: alias }), 'read_file');
    expect(await callTool(reader, { path: path.join(alias, 'src/a.txt') })).toContain('inside');
    expect(await callTool(reader, { path: requested })).toContain('inside');
    expect(await callTool(reader, { path: 'src/a.txt' })).toContain('inside');
  });

  it('accept a path through ".." that stays inside', async () => {
    const place = await yard();
    await place.put({ 'a/x.txt': 'inside\n', 'b/y.txt': '' });
    expect(await place.call('read_file', { path: 'b/../a/./x.txt' })).toContain('a/x.txt: 7 bytes');
    expect(await place.call('read_file', { path: './a//x.txt' })).toContain('inside');
  });

  it('refuse symbolic links that lead out, and do not reveal what is there', async () => {
    const place = await yard();
    await symlink(place.outside, path.join(place.root, 'link-out'));
    await symlink(path.join(place.outside, 'secret.txt'), path.join(place.root, 'link.txt'));
    for (const requested of [
      'link-out',
      'link-out/secret.txt',
      'link-out/missing.txt',
      'link.txt',
    ]) {
      for (const name of READERS) {
        const error = await place.failure(name, inputFor(name, requested));
        expect(error.message).toBe(
          `"${requested}" leads out of the folder that these tools may use, through a symbolic link`,
        );
      }
    }
  });

  it('write nothing through a symbolic link', async () => {
    const place = await yard();
    await place.put({ 'real.txt': 'before' });
    const links = {
      'out.txt': path.join(place.outside, 'secret.txt'),
      'dangling.txt': path.join(place.outside, 'new.txt'),
      'inside.txt': path.join(place.root, 'real.txt'),
      'relative.txt': '../outside/new2.txt',
      'link-out': place.outside,
      'missing-link': path.join(place.outside, 'not-there'),
      loop: 'loop',
    };
    for (const [name, target] of Object.entries(links)) {
      await symlink(target, path.join(place.root, name));
    }
    const attempts = [
      ...Object.keys(links),
      'link-out/new.txt',
      'missing-link/new.txt',
      'loop/new.txt',
    ];
    for (const requested of attempts) {
      const error = await place.failure('write_file', { path: requested, content: 'overwritten' });
      expect(error.name).toBe('ToolError');
      expect(error.message).toContain('symbolic link');
    }
    expect((await place.failure('write_file', { path: 'inside.txt', content: 'x' })).message).toBe(
      '"inside.txt" is a symbolic link; write to the file it names instead',
    );
    expect(await readdir(place.outside)).toEqual(['secret.txt']);
    expect(await readFile(path.join(place.outside, 'secret.txt'), 'utf8')).toBe('the secret\n');
    expect(await readFile(path.join(place.root, 'real.txt'), 'utf8')).toBe('before');
  });

  it('follow symbolic links that stay inside, for reading', async () => {
    const place = await yard();
    await place.put({ 'real/a.txt': 'inside\n' });
    await symlink('real', path.join(place.root, 'alias'));
    expect(await place.call('read_file', { path: 'alias/a.txt' })).toContain('real/a.txt: 7 bytes');
    await place.call('write_file', { path: 'alias/b.txt', content: 'new' });
    expect(await readFile(path.join(place.root, 'real/b.txt'), 'utf8')).toBe('new');
  });

  it('never walk through a symbolic link', async () => {
    const place = await yard();
    await place.put({ 'sub/a.txt': 'no match' });
    await symlink(place.outside, path.join(place.root, 'sub/link-out'));
    await symlink('..', path.join(place.root, 'sub/up'));
    const listed = await place.call('list_files', { depth: 64 });
    expect(listed.split('\n')).toEqual([
      '.: 1 folder, 1 file, 2 symbolic links (all levels)',
      'sub/',
      'sub/a.txt (8 bytes)',
      'sub/link-out (symbolic link)',
      'sub/up (symbolic link)',
    ]);
    const searched = await place.call('search_text', { query: 'secret' });
    expect(searched).toBe('0 matches in 0 files (1 file searched)');
  });

  it.each([
    ['a\0b', 'has a NUL character, which is not allowed in a path'],
    [
      '..\\outside\\secret.txt',
      'has backslashes; separate folders with "/": "../outside/secret.txt"',
    ],
    ['C:\\Windows', 'has backslashes'],
    [`${'x'.repeat(300)}.md`, 'has a name that is too long'],
  ])('refuse %j', async (requested, expected) => {
    const place = await yard();
    for (const error of await failures(place, requested)) {
      expect(error.name).toBe('ToolError');
      expect(error.message).toContain(expected);
    }
  });

  it('refuse FIFOs, sockets, and devices instead of waiting for them', async () => {
    const place = await yard();
    await makeFifo(path.join(place.root, 'pipe.txt'));
    const server = createServer().listen(path.join(place.root, 'socket.txt'));
    onTestFinished(() => void server.close());
    await symlink('/dev/zero', path.join(place.root, 'zero'));
    for (const [requested, kind] of [
      ['pipe.txt', 'a FIFO'],
      ['socket.txt', 'a socket'],
    ] as const) {
      for (const name of ['read_file', 'search_text', 'write_file']) {
        const error = await place.failure(name, inputFor(name, requested));
        expect(error.message).toBe(
          `"${requested}" is ${kind}, not an ordinary file; these tools do not open it`,
        );
      }
    }
    expect((await place.failure('read_file', { path: 'zero' })).message).toContain('leads out');
    expect(await place.call('list_files', {})).toContain('pipe.txt (not an ordinary file)');
    expect(await place.call('search_text', { query: 'x' })).toContain('0 files searched');
    const devices = toolNamed(fileTools({ root: '/dev' }), 'read_file');
    await expect(callTool(devices, { path: 'zero' })).rejects.toThrow('"zero" is a device');
  });

  it('name a missing file by the requested path, never by one of this machine', async () => {
    const place = await yard();
    await place.put({ 'src/index.ts': '', 'src/inside.ts': '', 'README.md': '' });
    const error = await place.failure('read_file', { path: 'src/indx.ts' });
    expect(error.name).toBe('ToolError');
    expect(error.message).toBe(
      '"src/indx.ts" does not exist; "src" contains "index.ts", "inside.ts"',
    );
    expect((await place.failure('list_files', { path: 'lib' })).message).toContain('"." contains');
    const throughFile = await place.failure('read_file', { path: 'README.md/x' });
    expect(throughFile.message).toContain(
      '"README.md/x" is not a folder, or a part of its path is',
    );
    for (const { message } of [error, throughFile]) expect(message).not.toContain(place.root);
  });

  it('report a missing root as an error that is retried', async () => {
    const place = await yard();
    await rename(place.root, `${place.root}-moved`);
    for (const error of await failures(place, 'x')) {
      expect(error.name).toBe('Error');
      expect(error.message).toContain(
        `the root folder ${place.root} of the file tools cannot be used`,
      );
    }
  });

  it('refuse options that cannot work', () => {
    expect(() => fileTools({ root: '' })).toThrow('fileTools: root: expected the folder');
    expect(() => fileTools({ root: '.', maxFileBytes: 0 })).toThrow(
      'maxFileBytes: expected number to be >=1, got 0',
    );
  });
});
