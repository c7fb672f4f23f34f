import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HistoryEvent } from '../../src/history/history-event.js';
import type { DurableEvent, DurableStep } from '../../src/history/durable-steps.js';
import type { EventSteps } from '../../src/history/follow-events.js';
import { createAttemptLog } from '../../src/live/attempts.js';
import {
  BEGINNING,
  readPosition,
  createStreamCursor,
  durableEntry,
} from '../../src/live/stream.js';
import { createStreamMerger, createStreamRing } from '../../src/live/run-stream.js';
import { createListener } from '../support/listener.js';

/** What happens next to the run of the test, or to its reader. */
type Move =
  | { readonly type: 'say'; readonly text: string }
  /** The worker sends deltas again from an offset on, as after a lost connection. */
  | { readonly type: 'repeat'; readonly from: number }
  | { readonly type: 'retry' }
  | { readonly type: 'reply' }
  | { readonly type: 'fail' }
  | { readonly type: 'person' }
  /** A delta of an attempt that is over. */
  | { readonly type: 'zombie' }
  | { readonly type: 'read'; readonly entries: number }
  | { readonly type: 'come-back' };

const anyMove: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant('say' as const),
      text: fc.string({ minLength: 1, maxLength: 9 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('repeat' as const), from: fc.nat(20) }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('read' as const), entries: fc.nat(12) }) },
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

/** Creates a run whose progress appears in its history and its workers. */
function createRun(ringEntries: number) {
  const ring = createStreamRing({ entries: ringEntries, units: 1_000_000 });
  const history: DurableEvent[] = [];
  const replies: string[] = [];
  /** The number of the attempt that produced each reply. */
  const attempts: number[] = [];
  const merger = createStreamMerger((entries) => {
    for (const entry of entries) ring.push(entry);
  });
  let events = 0;
  let step = 0;
  let attempt = 1;
  let scheduled = 0;
  let log = createAttemptLog();
  let over: { readonly activity: string; readonly attempt: number } | null = null;
  const place = () => ({ segment: 's', activity: `${step}`, attempt, turn: 1, step });
  const addEvent = (body: object, steps: readonly DurableStep[]): void => {
    events += 1;
    const event = { id: events, at: 0, ...body } as HistoryEvent;
    const durable = steps.map((one, index) => ({ ...one, offset: `s:${events}:${index}`, at: 0 }));
    history.push(...durable);
    merger.addEvent({ runId: 's', event, steps: durable } satisfies EventSteps);
  };
  const message = (text: string, role: string): never =>
    ({ n: events, turn: 1, step, at: 0, role, text }) as never;
  const begin = (): void => {
    step += 1;
    attempt = 1;
    log = createAttemptLog();
    addEvent({ type: 'scheduled', activity: 'callModel', activityId: `${step}` }, []);
    scheduled = events;
    merger.addDeltas({ attempt: place(), deltas: [] });
  };
  const end = (type: 'completed' | 'failed', steps: readonly DurableStep[]): void => {
    over = { activity: `${step}`, attempt };
    addEvent({ type, scheduled, result: null, failure: null }, []);
    addEvent({ type: 'command' }, steps);
    begin();
  };
  addEvent({ type: 'started' }, [{ type: 'run-started', agent: 'a', open: true }]);
  begin();
  return {
    ring,
    history,
    replies,
    attempts,
    merger,
    do(move: Move): void {
      switch (move.type) {
        case 'say': {
          const before = log.end;
          log.push({ kind: 'text', text: move.text });
          merger.addDeltas({ attempt: place(), deltas: log.since(before) });
          return;
        }
        case 'repeat':
          merger.addDeltas({ attempt: place(), deltas: log.since(Math.min(move.from, log.end)) });
          return;
        case 'retry':
          over = { activity: `${step}`, attempt };
          attempt += 1;
          log = createAttemptLog();
          merger.addDeltas({ attempt: place(), deltas: [] });
          return;
        case 'zombie':
          if (over !== null) {
            const deltas = [{ kind: 'text' as const, text: 'from the dead', offset: 0 }];
            merger.addDeltas({ attempt: { ...place(), ...over }, deltas });
          }
          return;
        case 'person':
          addEvent({ type: 'update' }, [{ type: 'message-added', message: message('hi', 'user') }]);
          return;
        case 'reply': {
          const text = log
            .since(0)
            .map((delta) => delta.text)
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

/**
 * Creates a reader that reads as `readStream` does, with a list of durable events as the history.
 */
function createReader({ ring, history, merger }: ReturnType<typeof createRun>) {
  const listener = createListener();
  let cursor = createStreamCursor(BEGINNING, merger.kept);
  let next = ring.after(null);
  const receive = (events: ReturnType<typeof cursor.advance>): void => {
    for (const event of events) listener.receive(event);
  };
  const catchUp = (): number | null => {
    for (;;) {
      const { durable } = cursor.position;
      const found = ring.after(durable);
      if (found !== null) return found;
      const place = durable === null ? -1 : history.findIndex(({ offset }) => offset === durable);
      const event = history[place + 1];
      if (event === undefined) return null;
      receive(cursor.advance(durableEntry(event)));
    }
  };
  return {
    listener,
    read(entries: number): void {
      for (let read = 0; read < entries; read += 1) {
        if (next === null || next < ring.start) {
          if (next !== null) receive(cursor.skipLost());
          next = catchUp();
        }
        const entry = next === null ? undefined : ring.at(next);
        if (entry === undefined || next === null) return;
        next += 1;
        receive(cursor.advance(entry));
      }
    },
    comeBack(): void {
      const position = listener.events.at(-1)?.position;
      if (position === undefined) return;
      cursor = createStreamCursor(readPosition(position), merger.kept);
      next = ring.after(cursor.position.durable);
    },
  };
}

test('a reader ends with the durable text, however slowly it reads and wherever it resumes', () => {
  const check = (moves: readonly Move[], ringEntries: number): void => {
    const run = createRun(ringEntries);
    const reader = createReader(run);
    for (const move of moves) {
      if (move.type === 'read') reader.read(move.entries);
      else if (move.type === 'come-back') reader.comeBack();
      else run.do(move);
    }
    run.do({ type: 'reply' });
    reader.read(10_000);
    const { listener } = reader;
    expect(listener.replies).toEqual(run.replies);
    expect(listener.partial).toBe('');
    // The deltas of a reply are a beginning of it unless there was a gap. A reader that both a retry and
    // the reply overtook may have received deltas of an earlier attempt only.
    for (const [index, received] of listener.streamed.entries()) {
      const isOfReply = listener.attempts[index] === run.attempts[index];
      if (isOfReply && !received.includes('[…]')) {
        expect(run.replies[index]?.startsWith(received)).toBe(true);
      }
    }
  };
  const size = fc.integer({ min: 1, max: 40 });
  fc.assert(fc.property(fc.array(anyMove, { maxLength: 60 }), size, check), { numRuns: 500 });
});
