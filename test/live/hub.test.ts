import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  createAttemptLog,
  type LiveAttempt,
  lengthOf,
  type Delta,
} from '../../src/live/attempts.js';
import { createLiveHub } from '../../src/live/hub.js';
import type { ModelDelta } from '../../src/models/model.js';
import { anyString } from '../support/any-string.js';

const attempt: LiveAttempt = { segment: 's', activity: '1', attempt: 1, turn: 1, step: 1 };
const textDelta = (text: string): ModelDelta => ({ kind: 'text', text });

function textOf(deltas: readonly Delta[]): string {
  return deltas.map((delta) => delta.text).join('');
}

describe('a hub', () => {
  test('notifies a watcher of the first delta, and not of each later one', async () => {
    const hub = createLiveHub();
    let woken = 0;
    const watch = hub.watch('run', () => (woken += 1));
    const writer = hub.begin('run', attempt);
    expect(watch.take()).toEqual([{ attempt, deltas: [] }]);
    woken = 0;
    writer.push(textDelta('a'));
    expect(woken).toBe(1);
    for (const letter of 'bcdef') writer.push(textDelta(letter));
    expect(woken).toBe(1);
    expect(watch.take().map(({ deltas }) => textOf(deltas))).toEqual(['abcdef']);
    writer.push(textDelta('g'));
    writer.end();
    expect(watch.take().map(({ deltas }) => textOf(deltas))).toEqual(['g']);
    expect(watch.take()).toEqual([]);
    watch.close();
  });

  test('sends a late watcher all replies in progress, and none that has ended', () => {
    const hub = createLiveHub();
    hub.begin('run', { ...attempt, activity: '0' }).end();
    const writer = hub.begin('run', attempt);
    writer.push(textDelta('so far'));
    hub.begin('other', attempt).push(textDelta('elsewhere'));
    const watch = hub.watch('run', () => undefined);
    expect(watch.take().map(({ deltas }) => textOf(deltas))).toEqual(['so far']);
    writer.end();
    watch.close();
  });

  test('keeps the newest ended replies for a watcher that reads late', () => {
    const hub = createLiveHub();
    const watch = hub.watch('run', () => undefined);
    for (let activity = 0; activity < 20; activity += 1) {
      const writer = hub.begin('run', { ...attempt, activity: `${activity}` });
      writer.push(textDelta(`${activity}`));
      writer.end();
    }
    expect(watch.take().map(({ deltas }) => textOf(deltas))).toEqual(['16', '17', '18', '19']);
    watch.close();
  });

  test('protects the reply from a watcher that throws', () => {
    const hub = createLiveHub();
    const broken = hub.watch('run', () => {
      throw new Error('broken');
    });
    let woken = 0;
    const other = hub.watch('run', () => (woken += 1));
    const writer = hub.begin('run', attempt);
    writer.push(textDelta('a'));
    writer.end();
    expect(woken).toBeGreaterThan(0);
    broken.close();
    other.close();
  });
});

const modelDelta: fc.Arbitrary<ModelDelta> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('text' as const, 'reasoning' as const),
    text: anyString({ maxLength: 12 }),
  }),
  fc.record(
    {
      kind: fc.constant('call' as const),
      index: fc.nat(2),
      name: fc.string({ maxLength: 4 }),
      text: fc.string({ maxLength: 12 }),
    },
    { requiredKeys: ['kind', 'index', 'text'] },
  ),
);

/** Returns the joined text of each part of the reply, names included. */
function parts(deltas: readonly ModelDelta[]) {
  const texts = new Map<string, string>();
  for (const { kind, index = 0, name = '', text } of deltas) {
    const part = `${kind}${index}`;
    texts.set(part, `${texts.get(part) ?? ''}${name}${text}`);
  }
  return Object.fromEntries([...texts].filter(([, all]) => all !== ''));
}

describe('the log of an attempt', () => {
  test('returns all text from any offset, in deltas that continue each other', () => {
    const check = (deltas: readonly ModelDelta[], share: number): void => {
      const log = createAttemptLog();
      for (const delta of deltas) log.push(delta);
      expect(parts(log.since(0))).toEqual(parts(deltas));
      const start = Math.floor(log.end * share);
      let next = start;
      for (const delta of log.since(start)) {
        expect(delta.offset).toBe(next);
        next += lengthOf(delta);
      }
      expect(next).toBe(log.end);
    };
    fc.assert(fc.property(fc.array(modelDelta), fc.double({ min: 0, max: 1, noNaN: true }), check));
  });

  test('can be copied by deltas that repeat and overlap', () => {
    const check = (deltas: readonly ModelDelta[], cuts: readonly number[]): void => {
      const [log, copy] = [createAttemptLog(), createAttemptLog()];
      for (const delta of deltas) log.push(delta);
      // Names are sent whole, so no reader resumes in the middle of one.
      const starts = log.since(0).map(({ offset }) => offset);
      for (const cut of [0, ...cuts]) {
        const known = starts.filter((start) => start <= copy.end);
        copy.receive(log.since(known[cut % known.length] ?? 0).slice(0, 1 + (cut % 3)));
      }
      copy.receive(log.since(0));
      expect(parts(copy.since(0))).toEqual(parts(log.since(0)));
      expect(copy.end).toBe(log.end);
    };
    fc.assert(fc.property(fc.array(modelDelta), fc.array(fc.nat(50), { maxLength: 6 }), check));
  });

  test('keeps the newest part of a very long text', () => {
    const log = createAttemptLog(10_000);
    for (let count = 0; count < 100; count += 1) log.push(textDelta('x'.repeat(1_000)));
    const kept = log.since(0);
    const [first] = kept;
    expect(first?.offset).toBeGreaterThan(70_000);
    expect(textOf(kept).length).toBe(100_000 - (first?.offset ?? 0));
    expect(textOf(kept).length).toBeGreaterThanOrEqual(10_000);
  });
});
