import { readdir, readFile } from 'node:fs/promises';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { HistoryEvent } from '../../src/history/history-event.js';
import { createProjector, project } from '../../src/history/projection.js';
import { createStepEmitter } from '../../src/history/emit-steps.js';
import { nextAction } from '../../src/core/run/next-action.js';
import type { Activities } from '../../src/core/run/contract.js';
import { isReply } from '../../src/core/guards/recorded.js';
import { fitsActivity } from '../../src/core/interpret/interpret.js';
import { isObject } from '../../src/core/text/json.js';
import { reduce } from '../../src/core/run/reduce.js';
import { callReply, begun, config } from '../support/scripts.js';

const FOLDER = new URL('../histories/', import.meta.url);
const NAMES = (await readdir(FOLDER)).filter((name) => name.endsWith('.json'));
const HISTORIES = await Promise.all(
  NAMES.map(async (name) => {
    const json = JSON.parse(await readFile(new URL(name, FOLDER), 'utf8'));
    return (historyFromJSON(json).events ?? []).map(decodeEvent);
  }),
);

/** The value with one of its parts replaced, however deep. */
function damaged(value: unknown, path: readonly number[], by: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined || typeof value !== 'object' || value === null) return by;
  const keys = Object.keys(value);
  const key = keys[first % Math.max(1, keys.length)];
  if (key === undefined) return by;
  const copy: Record<string, unknown> | unknown[] = Array.isArray(value)
    ? [...value]
    : { ...value };
  return Object.assign(copy, { [key]: damaged(Reflect.get(value, key), rest, by) });
}

/** The value with the part at a path replaced. */
function replaced(value: unknown, [key, ...rest]: readonly string[], by: unknown): unknown {
  if (key === undefined) return by;
  return isObject(value) ? { ...value, [key]: replaced(value[key], rest, by) } : value;
}

const harm = fc.record({
  history: fc.nat(HISTORIES.length - 1),
  event: fc.nat(),
  path: fc.array(fc.nat(6), { maxLength: 4 }),
  by: fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant({ text: 'by hand' })),
});

function harmed(
  events: readonly HistoryEvent[],
  { event, path, by }: { event: number; path: readonly number[]; by: unknown },
) {
  const results = events.filter((one) => 'result' in one || 'failure' in one || 'carried' in one);
  const chosen = results[event % results.length];
  return events.map((one): HistoryEvent => {
    if (one !== chosen) return one;
    if (one.type === 'failed') {
      const details = [damaged(one.failure.details[0], path, by)];
      return { ...one, failure: { ...one.failure, details } };
    }
    if (one.type === 'started') return { ...one, carried: damaged(one.carried, path, by) };
    return 'result' in one ? { ...one, result: damaged(one.result, path, by) } : one;
  });
}

const BLOB = { sha256: 'a'.repeat(64), bytes: 1 };
/**
 * By activity, which must all be listed: almost a result, except for one field deep inside. The
 * results of `checkBlob`, `notifyRequest`, and `rememberTurn` are not read.
 */
const WRONG: Readonly<
  Record<Exclude<keyof Activities, 'checkBlob' | 'notifyRequest' | 'rememberTurn'>, unknown>
> = {
  loadAgent: { ...config(), limits: { turn: { steps: 'x' }, run: {} } },
  callModel: { ...callReply(['look']), calls: [{ name: 'look', arguments: {}, digest: '' }] },
  runTool: { ok: true, text: 'x', blob: { ...BLOB, bytes: -1 } },
  runReads: { reads: [{ call: 'x', shown: 'x', result: { ok: 'unknown', message: 'x' } }] },
  runFunction: { happened: true, result: { ok: true } },
  retrieveDocuments: { documents: [{ text: 'x', source: 1 }] },
  archiveMessages: { blob: { ...BLOB, sha256: 'a' } },
  forkMessages: { chunk: { blob: BLOB, count: 1 }, head: 'x', tokens: 1, next: 1, from: {} },
  askRun: { turn: 'x' },
  followRun: { type: 'ended', outcome: { status: 'completed', reason: 'answer' } },
  checkDecision: { ok: true, result: { text: 7 } },
};

describe('a history with a result that was recorded by hand', () => {
  test('is read to its end without an exception, whatever was recorded', () => {
    fc.assert(
      fc.property(harm, ({ history, ...what }) => {
        const events = harmed(HISTORIES[history] ?? [], what);
        const projector = createProjector();
        const emit = createStepEmitter('r');
        for (const event of events) {
          projector.push(event);
          emit(event);
        }
        const { state, ended } = projector.view();
        if (state !== null) nextAction(state);
        expect(ended).not.toBeNull();
      }),
      { numRuns: 150 },
    );
  });

  test('gives a run no state if the definition that was passed on has another hash', () => {
    const events = HISTORIES[NAMES.indexOf('long-turn-last-segment.json')] ?? [];
    const path = ['state', 'config', 'definition', 'hash'];
    const forged = events.map((event): HistoryEvent =>
      event.type === 'started' ? { ...event, carried: replaced(event.carried, path, 'x') } : event,
    );
    expect(project(events).state).not.toBeNull();
    // The workflow refuses such a state as well, and fails before it has one.
    expect(project(forged).state).toBeNull();
  });

  test.each(Object.entries(WRONG))('shows that %s did not record it', (activity, wrong) => {
    for (const value of [null, 'by hand', [], wrong]) {
      expect({ value, fits: fitsActivity(activity, value) }).toEqual({ value, fits: false });
    }
  });

  test('has only replies that the reducer can apply', () => {
    const reply = callReply(['look', 1], ['nothing'], ['pay', { a: 1 }]);
    const parts = { path: fc.array(fc.nat(8), { minLength: 1, maxLength: 5 }), by: fc.jsonValue() };
    fc.assert(
      fc.property(fc.record(parts), ({ path, by }) => {
        const given = damaged({ ...reply, reports: [], dropped: ['x'] }, path, by);
        if (isReply(given)) reduce(begun(config()), { type: 'model-replied', reply: given, at: 0 });
      }),
      { numRuns: 500 },
    );
  });
});
