import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EventSteps } from '../../src/history/follow-events.js';
import type { HistoryEvent } from '../../src/history/decode-event.js';
import type { DurableEvent, DurableStep } from '../../src/history/durable-events.js';
import { createAttemptLog } from '../../src/live/attempt-log.js';
import { createStreamRing } from '../../src/live/stream-ring.js';
import { BEGINNING, readPosition } from '../../src/live/position.js';
import { createTeller, durableItem } from '../../src/live/stream-cursor.js';
import { createStreamMerger } from '../../src/live/stream-merger.js';
import { createListener } from '../support/listener.js';

/** What happens next in a run of the test, or to who reads it. */
type Move =
  | { readonly type: 'say'; readonly text: string }
  /** Tells it again from some place on, as a worker does whose line broke. */
  | { readonly type: 'repeat'; readonly from: number }
  | { readonly type: 'retry' }
  | { readonly type: 'reply' }
  | { readonly type: 'fail' }
  | { readonly type: 'person' }
  /** Of an attempt that is over. */
  | { readonly type: 'zombie' }
  | { readonly type: 'read'; readonly items: number }
  | { readonly type: 'come-back' };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant('say' as const),
      text: fc.string({ minLength: 1, maxLength: 9 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('repeat' as const), from: fc.nat(20) }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('read' as const), items: fc.nat(12) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constantFrom('retry' as const, 'fail' as const, 'zombie' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constantFrom('reply' as const, 'person' as const, 'come-back' as const),
    }),
  },
);

/** A run, made step by step as a history and workers tell of one. */
function createRun(ringItems: number) {
  const ring = createStreamRing({ items: ringItems, units: 1_000_000 });
  const history: DurableEvent[] = [];
  const replies: string[] = [];
  /** Which attempt each reply is of. */
  const attempts: number[] = [];
  const intake = createStreamMerger((items) => {
    for (const item of items) ring.push(item);
  });
  let events = 0;
  let step = 0;
  let attempt = 1;
  let scheduled = 0;
  let log = createAttemptLog();
  let over: { readonly activity: string; readonly attempt: number } | null = null;
  const place = () => ({ segment: 's', activity: `${step}`, attempt, turn: 1, step });
  const fact = (told: object, steps: readonly DurableStep[]): void => {
    events += 1;
    const known = { id: events, at: 0, ...told } as HistoryEvent;
    const durable = steps.map((one, index) => ({ ...one, offset: `s:${events}:${index}`, at: 0 }));
    history.push(...durable);
    intake.take({ runId: 's', fact: known, events: durable } satisfies EventSteps);
  };
  const message = (text: string, role: string): never =>
    ({ n: events, turn: 1, step, at: 0, role, text }) as never;
  const begin = (): void => {
    step += 1;
    attempt = 1;
    log = createAttemptLog();
    fact({ type: 'scheduled', activity: 'callModel', activityId: `${step}` }, []);
    scheduled = events;
    intake.hear({ attempt: place(), pieces: [] });
  };
  const end = (type: 'completed' | 'failed', steps: readonly DurableStep[]): void => {
    over = { activity: `${step}`, attempt };
    fact({ type, scheduled, result: null, failure: null }, []);
    fact({ type: 'command' }, steps);
    begin();
  };
  fact({ type: 'started' }, [{ type: 'run-started', agent: 'a', open: true }]);
  begin();
  return {
    ring,
    history,
    replies,
    attempts,
    intake,
    do(made: Move): void {
      switch (made.type) {
        case 'say': {
          const before = log.end;
          log.push({ kind: 'text', text: made.text });
          intake.hear({ attempt: place(), pieces: log.since(before) });
          return;
        }
        case 'repeat':
          intake.hear({ attempt: place(), pieces: log.since(Math.min(made.from, log.end)) });
          return;
        case 'retry':
          over = { activity: `${step}`, attempt };
          attempt += 1;
          log = createAttemptLog();
          intake.hear({ attempt: place(), pieces: [] });
          return;
        case 'zombie':
          if (over !== null) {
            const pieces = [{ kind: 'text' as const, text: 'from the dead', offset: 0 }];
            intake.hear({ attempt: { ...place(), ...over }, pieces });
          }
          return;
        case 'person':
          fact({ type: 'update' }, [{ type: 'message-said', message: message('hi', 'user') }]);
          return;
        case 'reply': {
          const text = log
            .since(0)
            .map((piece) => piece.text)
            .join('');
          replies.push(text);
          attempts.push(attempt);
          end('completed', [{ type: 'model-replied', message: message(text, 'assistant') }]);
          return;
        }
        case 'fail':
          end('failed', [{ type: 'work-blocked', on: 'model', reason: 'quota', message: 'no' }]);
          return;
        default:
      }
    },
  };
}

/** Reads as `readStream` does, with the list of durable events in the place of the history. */
function createReader({ ring, history, intake }: ReturnType<typeof createRun>) {
  const listener = createListener();
  let teller = createTeller(BEGINNING, intake.kept);
  let next = ring.behind(null);
  const hear = (events: ReturnType<typeof teller.tell>): void => {
    for (const event of events) listener.hear(event);
  };
  const catchUp = (): number | null => {
    for (;;) {
      const { durable } = teller.position;
      const found = ring.behind(durable);
      if (found !== null) return found;
      const place = durable === null ? -1 : history.findIndex(({ offset }) => offset === durable);
      const event = history[place + 1];
      if (event === undefined) return null;
      hear(teller.tell(durableItem(event)));
    }
  };
  return {
    listener,
    read(items: number): void {
      for (let read = 0; read < items; read += 1) {
        if (next === null || next < ring.start) {
          if (next !== null) hear(teller.overtaken());
          next = catchUp();
        }
        const item = next === null ? undefined : ring.at(next);
        if (item === undefined || next === null) return;
        next += 1;
        hear(teller.tell(item));
      }
    },
    comeBack(): void {
      const position = listener.events.at(-1)?.position;
      if (position === undefined) return;
      teller = createTeller(readPosition(position), intake.kept);
      next = ring.behind(teller.position.durable);
    },
  };
}

test('whoever reads, however slowly, and comes back wherever, ends with the text that is durable', () => {
  const check = (moves: readonly Move[], ringItems: number): void => {
    const run = createRun(ringItems);
    const reader = createReader(run);
    for (const made of moves) {
      if (made.type === 'read') reader.read(made.items);
      else if (made.type === 'come-back') reader.comeBack();
      else run.do(made);
    }
    run.do({ type: 'reply' });
    reader.read(10_000);
    const { listener } = reader;
    expect(listener.replies).toEqual(run.replies);
    expect(listener.spoken).toBe('');
    // What was heard of a reply is a part of it, from its beginning, unless a gap was told. A reader that
    // was overtaken by a retry and the reply at once may have heard of an earlier attempt only.
    for (const [index, heard] of listener.heard.entries()) {
      const isOfReply = listener.attempts[index] === run.attempts[index];
      if (isOfReply && !heard.includes('[…]')) {
        expect(run.replies[index]?.startsWith(heard)).toBe(true);
      }
    }
  };
  const size = fc.integer({ min: 1, max: 40 });
  fc.assert(fc.property(fc.array(move, { maxLength: 60 }), size, check), { numRuns: 500 });
});
