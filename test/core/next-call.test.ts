import { describe, expect, test } from 'vitest';
import { toEvents } from '../../src/core/interpret/loop.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import type { Work } from '../../src/core/state/work.js';
import { after, failed, replied, scheduled, toolTask, update } from '../support/facts.js';
import { callReply, begun, config, SHORT, toolDefinition, TOOLS } from '../support/scripts.js';
import { getOutcome } from '../../src/core/state/turn.js';

const FULL = { ...SHORT, historyEvents: 5_000 };
const typeOf = (state: RunState, segment = SHORT): string => nextAction(state, segment).type;
const withWork = (state: RunState, ...work: readonly Work[]): RunState => ({ ...state, work });
const BLOCK = { reason: 'quota', message: 'x', until: 9 } as const;
const waiting = (name: string): Work => ({ name, block: BLOCK, phase: 'waiting' });
const flying = (name: string): Work => ({ name, phase: 'in-flight', as: 'attempt' });

describe('a prompt that is too long', () => {
  const answered = replied(
    replied(replied(begun(config()), callReply(['nothing'])), callReply(['nothing', 1])),
    callReply(['nothing', 2]),
  );
  const long = { ...answered, compaction: { ...answered.compaction, wanted: true } };

  test('is summarized, after its messages are archived if the run has an archive', () => {
    const action = nextAction(long);
    expect(action).toMatchObject({ type: 'compact', maxOutputTokens: null });
    const cut = action.type === 'compact' ? action.cut : 0;
    const archives: RunState = { ...long, archives: true };
    expect(nextAction(archives)).toEqual({ type: 'archive', cut, must: true });
    expect(typeOf({ ...archives, archived: cut - 1 })).toBe('archive');
    expect(typeOf({ ...archives, archived: cut })).toBe('compact');
    // Two of the messages are in a chunk.
    const chunk = { blob: { sha256: 'a'.repeat(64), bytes: 1 }, count: 2 };
    const archived = { archived: cut - 1, chunk };
    const chunked = reduce(archives, { type: 'messages-archived', ...archived });
    expect(nextAction(chunked)).toEqual({ type: 'archive', cut, must: true });
    const side = { messages: 1, head: '', tokens: 0, promptTokens: 0 };
    expect(
      typeOf({ ...long, turn: { ...long.turn, phase: { type: 'repairing', branch: side } } }),
    ).toBe('call-model');
  });

  test('is not summarized if its messages cannot be archived', () => {
    const archives: RunState = { ...long, archives: true };
    const { cut = 0 } = nextAction(archives) as { cut?: number };
    const input = { archive: { from: 0, to: 1 }, chunk: null, cut };
    const task = { activity: 'archiveMessages', input };
    const next = after(archives, scheduled(task), failed(task, 'down'));
    expect(next.transcript.messages).toEqual(archives.transcript.messages);
    expect(getOutcome(next)).toMatchObject({ status: 'failed', reason: 'context_too_long' });
    const optional = { ...archives, compaction: { ...archives.compaction, wanted: false } };
    const goesOn = after(optional, scheduled(task), failed(task, 'down'));
    expect(typeOf(goesOn)).toBe('call-model');
  });
});

describe('within a batch', () => {
  const tools = [...TOOLS, toolDefinition('nap', 'read', { repeat: 'allow', kind: 'wait' })];
  const start = begun(config({ tools }));
  const two = replied(start, callReply(['look'], ['put']));
  const nap = replied(start, callReply(['nap', { seconds: 5 }], ['look']));

  test('all calls are executed at once, or one after the other', () => {
    expect(nextAction(two)).toMatchObject({
      type: 'run-calls',
      calls: [{ name: 'look' }, { name: 'put' }],
    });
    const sequential = replied(
      begun(config({ toolCalls: 'sequential' })),
      callReply(['look'], ['put']),
    );
    expect(nextAction(sequential)).toMatchObject({ calls: [{ name: 'look' }] });
  });

  test('a paused run waits once nothing is in flight, in a new segment if this one is full', () => {
    const paused = after(two, update('pause'));
    expect(typeOf(paused)).toBe('await-resume');
    const busy = withWork(paused, waiting('call_1_1_0'));
    expect(typeOf(busy)).toBe('run-calls');
    expect(typeOf(busy, FULL)).toBe('continue-as-new');
    expect(typeOf(withWork(two, waiting('call_1_1_0')), FULL)).toBe('continue-as-new');
    expect(typeOf(withWork(two, flying('call_1_1_0')), FULL)).toBe('run-calls');
    expect(typeOf(two, FULL)).toBe('run-calls');
    expect(typeOf(after(nap, update('pause')), FULL)).toBe('continue-as-new');
  });

  test('waits are the last, when all other calls have their results', () => {
    const task = toolTask(nap, 1);
    const alone = after(nap, scheduled(task), {
      type: 'completed',
      task,
      result: { ok: true, text: 'x' },
      at: 0,
    });
    expect(nextAction(alone)).toEqual({ type: 'await-time', until: 5_000 });
    expect(typeOf(alone, FULL)).toBe('continue-as-new');
    expect(typeOf(after(alone, update('pause')))).toBe('await-time');
    const heavy = 'x'.repeat(512 * 1024);
    const large = after(nap, scheduled(task), {
      type: 'completed',
      task,
      result: { ok: true, text: heavy },
      at: 0,
    });
    expect(typeOf(large, FULL)).toBe('await-time');
  });

  test('a call that a person has to check is the only request', () => {
    const [look, put] = callReply(['look'], ['put']).calls ?? [];
    const checked = put && { ...put, safety: [{ id: 'c' }] };
    const state = replied(start, { ...callReply(), calls: look && checked ? [look, checked] : [] });
    const action = nextAction(state);
    expect(action).toMatchObject({
      type: 'raise-requests',
      requests: [{ call: 'call_1_1_1', request: { kind: 'safety_check' } }],
    });
    if (action.type !== 'raise-requests') return;
    const events = toEvents(action, 3);
    expect(events).toMatchObject([
      {
        type: 'request-raised',
        work: 'call_1_1_1',
        request: { kind: 'safety_check', raisedAt: 3 },
      },
    ]);
    const asking = events.reduce(reduce, state);
    expect(asking.work).toMatchObject([
      { name: 'call_1_1_1', phase: 'asking', request: { id: 'r1' } },
    ]);
    expect(nextAction(asking)).toEqual({ type: 'await-decision' });
    expect(typeOf(asking, FULL)).toBe('continue-as-new');
    expect(typeOf(after(state, update('pause')))).toBe('await-resume');
  });

  test('a run that is paused while a call waits for approval begins no other call, and waits', () => {
    const [pay, look] = callReply(['pay'], ['look']).calls ?? [];
    const guarded = pay && { ...pay, verdict: { then: 'ask', why: 'a rule' } as const };
    const state = replied(start, { ...callReply(), calls: guarded && look ? [guarded, look] : [] });
    const action = nextAction(state);
    if (action.type !== 'raise-requests') throw new Error(action.type);
    const asking = toEvents(action, 0).reduce(reduce, state);
    expect(nextAction(asking)).toMatchObject({ type: 'run-calls', calls: [{ name: 'look' }] });
    const paused = after(asking, update('pause'));
    expect(nextAction(paused)).toEqual({ type: 'await-decision' });
  });
});
