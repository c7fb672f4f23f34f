import { describe, expect, it } from 'vitest';
import type { Archive, ArchivedRun } from '../../src/storage/blob-store.js';
import { archivedHistory, archivedRun as run } from './archived.js';

/** The contract of every archive. `create` returns an empty archive. */
export function archiveContract(name: string, create: () => Promise<Archive>): void {
  describe(`an archive in ${name}`, () => {
    it('returns what was written, and lists it', async () => {
      const archive = await create();
      const [one, other] = [archivedHistory(7), archivedHistory(1_234_567)];
      await archive.write(run, one, '{"events": [1]}');
      await archive.write(run, other, '\u2028 "\\ 😀 ü');
      expect(await archive.list(run)).toEqual(expect.arrayContaining([one, other]));
      expect(await archive.list(run)).toHaveLength(2);
      expect(await archive.read(run, one)).toBe('{"events": [1]}');
      expect(await archive.read(run, other)).toBe('\u2028 "\\ 😀 ü');
    });

    it('lists nothing for an unknown run, and fails to read it', async () => {
      const archive = await create();
      expect(await archive.list(run)).toEqual([]);
      const history = archivedHistory(3);
      await archive.write(run, history, 'x');
      expect(await archive.list({ ...run, id: 'order-18' })).toEqual([]);
      expect(await archive.list({ ...run, id: 'order-1' })).toEqual([]);
      expect(await archive.list({ ...run, namespace: 'other' })).toEqual([]);
      await expect(archive.read(run, archivedHistory(4))).rejects.toMatchObject({
        name: 'ArchiveError',
        kind: 'unreadable',
        message: expect.stringContaining('is missing; restore it from a backup') as string,
      });
    });

    it('stores the same history once, however often and concurrently it is written', async () => {
      const archive = await create();
      const history = archivedHistory(9);
      const text = 'x'.repeat(300_000);
      await Promise.all([1, 2, 3, 4].map(() => archive.write(run, history, text)));
      await archive.write(run, history, text);
      expect(await archive.list(run)).toEqual([history]);
      expect(await archive.read(run, history)).toBe(text);
    });

    it('stores a longer history of a segment beside the shorter one', async () => {
      const archive = await create();
      const short = archivedHistory(9);
      const long = { ...short, events: 12, at: short.at + 5 };
      await Promise.all([archive.write(run, long, 'long'), archive.write(run, short, 'short')]);
      expect(await archive.list(run)).toEqual(expect.arrayContaining([short, long]));
      expect(await archive.read(run, long)).toBe('long');
    });

    it('stores each id separately, whatever its characters', async () => {
      const archive = await create();
      const forms = ['\u00e9', 'e\u0301', '\uD800', '\uD801', '😀', '-', '~', 'x'.repeat(1_000)];
      const paths = ['..', '.', '', '/', '../../x', 'a/b', 'a-b', 'A-b', 'a\\b', 'a\0b', 'a b+%2F'];
      const runs = [...forms, ...paths].map((id): ArchivedRun => ({ namespace: id, id }));
      const histories = runs.map((_, index) => archivedHistory(index + 1));
      for (const [index, odd] of runs.entries()) {
        const history = histories[index];
        if (history !== undefined) await archive.write(odd, history, `${index}`);
      }
      for (const [index, odd] of runs.entries()) {
        expect(await archive.list(odd)).toEqual([histories[index]]);
        const [history] = await archive.list(odd);
        expect(history && (await archive.read(odd, history))).toBe(`${index}`);
      }
    });

    it('refuses ids that no server would assign', async () => {
      const archive = await create();
      const history = { ...archivedHistory(1), runId: '../../x' };
      await expect(archive.write(run, history, 'x')).rejects.toMatchObject({
        kind: 'unwritable',
        message: expect.stringContaining(
          'history: expected the ids of a run on Temporal',
        ) as string,
      });
    });
  });
}
