import { fork, type ChildProcess } from 'node:child_process';
import { on, once } from 'node:events';
import {
  appendFile,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ArchiveError, type ArchivedRun } from '../../src/storage/archive.js';
import { fileArchive } from '../../src/storage/file-archive.js';
import type { Message } from '../../src/core/transcript/messages.js';
import { archivedMessage, archivedMessages, archivedRun as run } from '../support/archived.js';

const WRITER = fileURLToPath(new URL('../support/archive-writer.ts', import.meta.url));

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'perdure-archive-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function fileOf(folder: string, id = run.id): string {
  return path.join(folder, run.namespace, id, `${run.firstRunId}.jsonl`);
}

async function linesOf(folder: string): Promise<readonly string[]> {
  return (await readFile(fileOf(folder), 'utf8')).split('\n');
}

async function failureOf(promise: Promise<unknown>): Promise<ArchiveError> {
  const error: unknown = await promise.then(
    () => new Error('it did not fail'),
    (thrown: unknown) => thrown,
  );
  if (error instanceof ArchiveError) return error;
  throw error;
}

/** Starts a writer process that waits for a signal; it ends with the test. */
async function writer(folder: string, batch: number, count: number): Promise<ChildProcess> {
  const child = fork(WRITER, [folder, String(batch), String(count)], {
    execArgv: ['--import', 'tsx'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

describe('fileArchive', () => {
  it('returns what was appended, in order of the numbers', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    await archive.append(run, archivedMessages(3, 6));
    await archive.append(run, archivedMessages(0, 3));
    await archive.append(run, []);
    expect(await fileArchive(folder).read(run)).toEqual(archivedMessages(0, 6));
  });

  it('writes one line of JSON for each message', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    await archive.append(run, archivedMessages(0, 2));
    await archive.append(run, archivedMessages(2, 3));
    const lines = archivedMessages(0, 3).map((message) => JSON.stringify(message));
    expect(await linesOf(folder)).toEqual([...lines, '']);
  });

  it('keeps every field of calls, results, and summaries', async () => {
    const archive = fileArchive(await temporaryFolder());
    const place = { turn: 1, step: 1, at: 1 };
    const blob = { sha256: 'ab'.repeat(32), bytes: 70_000 };
    const call = { id: 'call_1_1_0', name: 'f', arguments: '{}', digest: 'd', blob };
    const messages: readonly Message[] = [
      { role: 'user', text: '', n: 0, ...place, origin: 'perdure', compacts: { from: 0, to: 9 } },
      { role: 'assistant', text: 'x', n: 1, ...place, calls: [call] },
      { role: 'tool', text: '\uD800 half', n: 2, ...place, callId: call.id, blob },
    ];
    await archive.append(run, messages);
    expect(await archive.read(run)).toEqual(messages);
  });

  it('reads from one number to before another', async () => {
    const archive = fileArchive(await temporaryFolder());
    await archive.append(run, archivedMessages(0, 9));
    expect(await archive.read(run, { from: 7 })).toEqual(archivedMessages(7, 9));
    expect(await archive.read(run, { to: 2 })).toEqual(archivedMessages(0, 2));
    expect(await archive.read(run, { from: 4, to: 6 })).toEqual(archivedMessages(4, 6));
    expect(await archive.read(run, { from: 9 })).toEqual([]);
  });

  it('returns nothing for an unknown run', async () => {
    const folder = await temporaryFolder();
    expect(await fileArchive(path.join(folder, 'not', 'there')).read(run)).toEqual([]);
    await fileArchive(folder).append(run, archivedMessages(0, 1));
    expect(await fileArchive(folder).read({ ...run, id: 'order-18' })).toEqual([]);
    expect(await fileArchive(folder).read({ ...run, firstRunId: 'other' })).toEqual([]);
    expect(await fileArchive(folder).read({ ...run, namespace: 'other' })).toEqual([]);
    expect(await readdir(folder, { recursive: true })).toHaveLength(3);
  });

  it('adds no existing message, even far from the end of a long file', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    await archive.append(run, archivedMessages(0, 300));
    const before = await readFile(fileOf(folder));
    expect(before.length).toBeGreaterThan(3 * 256 * 1024);
    for (const [from, to] of [
      [0, 300],
      [299, 300],
      [5, 10],
    ] as const) {
      await archive.append(run, archivedMessages(from, to));
    }
    expect(before.equals(await readFile(fileOf(folder)))).toBe(true);
    await archive.append(run, archivedMessages(290, 301));
    expect((await linesOf(folder)).length).toBe(302);
    expect(await archive.read(run)).toEqual(archivedMessages(0, 301));
  });

  it('returns the newest text if a number was appended again after a reset', async () => {
    const archive = fileArchive(await temporaryFolder());
    await archive.append(run, archivedMessages(0, 3));
    const anew: Message = { ...archivedMessage(1), text: 'otherwise' };
    await archive.append(run, [anew]);
    await archive.append(run, [anew]);
    expect(await archive.read(run)).toEqual([archivedMessage(0), anew, archivedMessage(2)]);
    await archive.append(run, archivedMessages(1, 2));
    expect(await archive.read(run)).toEqual(archivedMessages(0, 3));
  });

  it('repairs a line that was cut off anywhere, and loses nothing before it', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    const messages = [0, 1, 2].map((n): Message => ({
      ...archivedMessage(n),
      text: `${n} ü😀\\"`,
    }));
    await archive.append(run, messages);
    const whole = await readFile(fileOf(folder));
    const ends = [...whole.entries()].filter(([, byte]) => byte === 0x0a).map(([at]) => at);
    for (let size = 0; size <= whole.length; size += 1) {
      await writeFile(fileOf(folder), whole);
      await truncate(fileOf(folder), size);
      const kept = ends.filter((end) => end < size).length;
      expect(await archive.read(run)).toEqual(messages.slice(0, kept));
      await archive.append(run, messages.slice(kept));
      expect(await archive.read(run)).toEqual(messages);
      const torn = ends.includes(size - 1) || size === 0 ? '' : '\n';
      const added = messages.slice(kept).map((message) => `${JSON.stringify(message)}\n`);
      const expected = Buffer.concat([whole.subarray(0, size), Buffer.from(torn + added.join(''))]);
      expect((await readFile(fileOf(folder))).equals(expected)).toBe(true);
    }
  });

  it('skips lines that are not messages', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    await archive.append(run, archivedMessages(0, 1));
    await appendFile(
      fileOf(folder),
      '\n\0\0\0\nnull\n[]\n{"n":1}\n{"role":"user","text":"","n":"1"}\n',
    );
    await archive.append(run, archivedMessages(1, 2));
    expect(await archive.read(run)).toEqual(archivedMessages(0, 2));
  });

  it('returns each number once, however appends are ordered and cut off', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    const range = fc.tuple(fc.nat(30), fc.nat(8));
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(range, fc.nat(3_000)), { maxLength: 8 }),
        async (steps) => {
          const here = { ...run, id: `run-${(runs += 1)}` };
          const expected = new Set<number>();
          for (const [[from, length], torn] of steps) {
            const messages = archivedMessages(from, from + length + 1);
            await Promise.all([archive.append(here, messages), archive.append(here, messages)]);
            for (const { n } of messages) expected.add(n);
            const half = JSON.stringify(archivedMessage(99)).slice(0, -1).slice(0, torn);
            await appendFile(fileOf(folder, here.id), half);
          }
          const numbers = [...expected].toSorted((a, b) => a - b);
          expect(await archive.read(here)).toEqual(numbers.map(archivedMessage));
        },
      ),
      { numRuns: 60 },
    );
  });
});

async function filesOf(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}

describe('the place of a run', () => {
  it('is readable if the names are plain', async () => {
    const folder = await temporaryFolder();
    await fileArchive(folder).append(run, archivedMessages(0, 1));
    expect(await filesOf(folder)).toEqual([fileOf(folder)]);
  });

  it('is unique for each id, inside the folder, even if case and form are folded', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    const long = ['x'.repeat(1_000), 'x'.repeat(999)];
    const forms = ['\u00e9', 'e\u0301', '\uD800', '\uD801', '😀', '-', '~'];
    const paths = ['..', '.', '', '/', '../../x', 'a/b', 'a-b', 'A-b', 'a\\b', 'a\0b', 'a.', 'a '];
    const ids = [...long, ...forms, ...paths];
    const runs = ids.map((id): ArchivedRun => ({ namespace: id, id, firstRunId: id }));
    for (const [n, odd] of runs.entries()) {
      await archive.append(odd, [archivedMessage(n)]);
    }
    for (const [n, odd] of runs.entries()) {
      expect(await archive.read(odd)).toEqual([archivedMessage(n)]);
    }
    const files = await filesOf(folder);
    const folded = files.map((file) => file.normalize('NFKC').toLowerCase());
    expect(new Set(folded).size).toBe(ids.length);
    const depths = files.map((file) => path.relative(folder, file).split(path.sep));
    expect(depths.every((parts) => parts.length === 3 && !parts.includes('..'))).toBe(true);
  });

  it('cannot be that of another run by taking its name', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    await archive.append({ ...run, id: 'A' }, archivedMessages(0, 1));
    const [taken = ''] = await readdir(path.join(folder, run.namespace));
    expect(taken).toMatch(/^a-[0-9a-f]{64}$/);
    expect(await archive.read({ ...run, id: taken })).toEqual([]);
  });
});

describe('two processes', () => {
  it('that append the same messages concurrently keep each message once', async () => {
    const folder = await temporaryFolder();
    const children = await Promise.all([1, 7].map((batch) => writer(folder, batch, 60)));
    const ends = children.map((child) => once(child, 'exit'));
    for (const child of children) child.send('start');
    expect(await Promise.all(ends)).toEqual([
      [0, null],
      [0, null],
    ]);
    expect(await fileArchive(folder).read(run)).toEqual(archivedMessages(0, 60));
  });

  it('of which one is killed keep everything that it had reported, and the rest can follow', async () => {
    const folder = await temporaryFolder();
    const archive = fileArchive(folder);
    for (const [round, batch] of [3, 40, 400].entries()) {
      const child = await writer(folder, batch, 100_000);
      const exit = once(child, 'exit');
      const reports = on(child, 'message') as AsyncIterable<[number]>;
      child.send('start');
      let safe = 0;
      for await (const [count] of reports) {
        safe = count;
        if (safe >= (round + 1) * 400) break;
      }
      // The next append is in progress by now.
      child.kill('SIGKILL');
      expect(await exit).toEqual([null, 'SIGKILL']);
      const left = await archive.read(run);
      expect(left.length).toBeGreaterThanOrEqual(safe);
      expect(left).toEqual(archivedMessages(0, left.length));
      await archive.append(run, archivedMessages(safe, left.length + 2));
      expect(await archive.read(run)).toEqual(archivedMessages(0, left.length + 2));
    }
  });
});

describe('an archive that fails', () => {
  it('names the file and the fix if a part of its path is a file', async () => {
    const file = path.join(await temporaryFolder(), 'file');
    await writeFile(file, '');
    const archive = fileArchive(file);
    const place = fileOf(file);
    const fix = 'a part of the path is a file: set PERDURE_HOME to a folder';
    const written = await failureOf(archive.append(run, archivedMessages(0, 1)));
    expect(written.kind).toBe('unwritable');
    expect(written.message).toMatch(`the archive ${place} cannot be written: ${fix} (E`);
    const read = await failureOf(archive.read(run));
    expect(read.kind).toBe('unreadable');
    expect(read.message).toBe(`the archive ${place} cannot be read: ${fix} (ENOTDIR)`);
  });

  it.skipIf(process.platform !== 'linux')('names a folder that may not be written to', async () => {
    const archive = fileArchive('/sys/perdure-archive');
    const error = await failureOf(archive.append(run, archivedMessages(0, 1)));
    expect(error.kind).toBe('unwritable');
    expect(error.message).toContain('/sys/perdure-archive');
    expect(error.message).toContain('set PERDURE_HOME to a writable folder');
  });

  it('says so if a folder is in the place of the file', async () => {
    const folder = await temporaryFolder();
    await mkdir(fileOf(folder), { recursive: true });
    expect((await failureOf(fileArchive(folder).read(run))).message).toContain('(EISDIR)');
  });
});
