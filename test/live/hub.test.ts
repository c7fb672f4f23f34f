import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createAttemptLog } from '../../src/live/attempt-log.js';
import type { LiveAttempt } from '../../src/live/attempt.js';
import { createLiveHub } from '../../src/live/hub.js';
import { pieceOf, unitsOf, type PlacedPiece } from '../../src/live/delta.js';
import type { Delta } from '../../src/models/model.js';

const attempt: LiveAttempt = { segment: 's', activity: '1', attempt: 1, turn: 1, step: 1 };
const text = (said: string): Delta => ({ type: 'text', text: said });

function textOf(pieces: readonly PlacedPiece[]): string {
  return pieces.map((piece) => piece.text).join('');
}

describe('a hub', () => {
  test('wakes a watcher with the first piece, and then not with each', async () => {
    const hub = createLiveHub();
    let woken = 0;
    const watch = hub.watch('run', () => (woken += 1));
    const writer = hub.begin('run', attempt);
    expect(watch.take()).toEqual([{ attempt, pieces: [] }]);
    woken = 0;
    writer.push(text('a'));
    expect(woken).toBe(1);
    for (const letter of 'bcdef') writer.push(text(letter));
    expect(woken).toBe(1);
    expect(watch.take().map(({ pieces }) => textOf(pieces))).toEqual(['abcdef']);
    writer.push(text('g'));
    writer.end();
    expect(watch.take().map(({ pieces }) => textOf(pieces))).toEqual(['g']);
    expect(watch.take()).toEqual([]);
    watch.close();
  });

  test('tells a watcher that comes late all that is being said, and nothing that has ended', () => {
    const hub = createLiveHub();
    hub.begin('run', { ...attempt, activity: '0' }).end();
    const writer = hub.begin('run', attempt);
    writer.push(text('so far'));
    hub.begin('other', attempt).push(text('elsewhere'));
    const watch = hub.watch('run', () => undefined);
    expect(watch.take().map(({ pieces }) => textOf(pieces))).toEqual(['so far']);
    writer.end();
    watch.close();
  });

  test('keeps the end of a reply for a watcher that takes late, not of many replies', () => {
    const hub = createLiveHub();
    const watch = hub.watch('run', () => undefined);
    for (let activity = 0; activity < 20; activity += 1) {
      const writer = hub.begin('run', { ...attempt, activity: `${activity}` });
      writer.push(text(`${activity}`));
      writer.end();
    }
    expect(watch.take().map(({ pieces }) => textOf(pieces))).toEqual(['16', '17', '18', '19']);
    watch.close();
  });

  test('does not let a watcher that throws cost the reply', () => {
    const hub = createLiveHub();
    const broken = hub.watch('run', () => {
      throw new Error('broken');
    });
    let woken = 0;
    const other = hub.watch('run', () => (woken += 1));
    const writer = hub.begin('run', attempt);
    writer.push(text('a'));
    writer.end();
    expect(woken).toBeGreaterThan(0);
    broken.close();
    other.close();
  });
});

const delta: fc.Arbitrary<Delta> = fc.oneof(
  fc.record({
    type: fc.constantFrom('text' as const, 'reasoning' as const),
    text: fc.string({ unit: 'binary', maxLength: 12 }),
  }),
  fc.record(
    {
      type: fc.constant('call' as const),
      index: fc.nat(2),
      name: fc.string({ maxLength: 4 }),
      arguments: fc.string({ maxLength: 12 }),
    },
    { requiredKeys: ['type', 'index'] },
  ),
);

/** What was said, part by part of the reply, units of names apart. */
function parts(pieces: readonly { kind: string; index?: number; name?: string; text: string }[]) {
  const said = new Map<string, string>();
  for (const { kind, index = 0, name = '', text: piece } of pieces) {
    const part = `${kind}${index}`;
    said.set(part, `${said.get(part) ?? ''}${name}${piece}`);
  }
  return Object.fromEntries([...said].filter(([, all]) => all !== ''));
}

describe('what is kept of an attempt', () => {
  test('is all that was said, from any offset, in pieces that follow each other', () => {
    const check = (deltas: readonly Delta[], share: number): void => {
      const log = createAttemptLog();
      for (const one of deltas) log.push(pieceOf(one));
      const all = log.since(0);
      expect(parts(all)).toEqual(parts(deltas.map((one) => pieceOf(one))));
      const rest = log.since(Math.floor(log.end * share));
      let next = Math.floor(log.end * share);
      for (const piece of rest) {
        expect(piece.offset).toBe(next);
        next += unitsOf(piece);
      }
      expect(next).toBe(log.end);
    };
    fc.assert(fc.property(fc.array(delta), fc.double({ min: 0, max: 1, noNaN: true }), check));
  });

  test('is taken over by somebody else, whatever comes twice or overlaps', () => {
    const check = (deltas: readonly Delta[], cuts: readonly number[]): void => {
      const [log, copy] = [createAttemptLog(), createAttemptLog()];
      for (const one of deltas) log.push(pieceOf(one));
      // Names are told whole, so nobody goes on in the middle of one.
      const starts = log.since(0).map(({ offset }) => offset);
      for (const cut of [0, ...cuts]) {
        const known = starts.filter((start) => start <= copy.end);
        copy.receive(log.since(known[cut % known.length] ?? 0).slice(0, 1 + (cut % 3)));
      }
      copy.receive(log.since(0));
      expect(parts(copy.since(0))).toEqual(parts(log.since(0)));
      expect(copy.end).toBe(log.end);
    };
    fc.assert(fc.property(fc.array(delta), fc.array(fc.nat(50), { maxLength: 6 }), check));
  });

  test('is the newest part of what is very long', () => {
    const log = createAttemptLog(10_000);
    for (let piece = 0; piece < 100; piece += 1)
      log.push({ kind: 'text', text: 'x'.repeat(1_000) });
    const kept = log.since(0);
    const [first] = kept;
    expect(first?.offset).toBeGreaterThan(70_000);
    expect(textOf(kept).length).toBe(100_000 - (first?.offset ?? 0));
    expect(textOf(kept).length).toBeGreaterThanOrEqual(10_000);
  });
});
