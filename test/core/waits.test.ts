import { describe, expect, test } from 'vitest';
import { finishedWaits, openWaits } from '../../src/core/calls/batch.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import { after, replied, results, update } from '../support/facts.js';
import { callReply, begun, config, toolDefinition, TOOLS } from '../support/scripts.js';
import { getOpenBatch } from '../../src/core/state/turn.js';

const tools = [...TOOLS, toolDefinition('nap', 'read', { repeat: 'allow', kind: 'wait' })];
const start = begun(config({ tools }));
const napping = replied(start, callReply(['nap', { seconds: 5 }], ['nap', { seconds: 9 }]));

describe('waits', () => {
  test('end one by one, and the batch with the last', () => {
    const batch = getOpenBatch(napping);
    expect(batch && openWaits(napping, batch, batch.calls).map(({ until }) => until)).toEqual([
      5_000, 9_000,
    ]);
    expect(nextAction(napping)).toEqual({ type: 'await-time', until: 5_000 });
    expect(nextAction(napping, undefined, 4_999).type).toBe('await-time');
    expect(nextAction(napping, undefined, 5_000)).toEqual({ type: 'pass-time' });
    const first = reduce(napping, { type: 'time-passed', at: 5_000 });
    expect(getOpenBatch(first)?.results).toEqual([
      { id: 'call_1_1_0', ok: true, text: 'waited 5 s', executed: true },
      null,
    ]);
    expect(first.turn.spent.toolCalls).toBe(1);
    const both = reduce(first, { type: 'time-passed', at: 9_000 });
    expect(results(both)).toEqual(['waited 5 s', 'waited 9 s']);
    expect(both.transcript.messages.at(-1)?.at).toBe(9_000);
    expect(finishedWaits(both, 9_000)).toEqual([]);
  });

  test('begin when the model requested them', () => {
    const later = replied(start, callReply(['nap', { seconds: 5 }]), 100);
    expect(nextAction(later, undefined, 200)).toEqual({ type: 'await-time', until: 5_100 });
  });

  test('with invalid arguments are refused', () => {
    expect(results(replied(start, callReply(['nap', { seconds: -1 }])))[0]).toContain(
      'invalid_arguments',
    );
  });

  test('that a person changes to end too far ahead end at once', () => {
    const json = '{"until":"2099-01-01T00:00:00Z"}';
    const call = { name: 'nap', arguments: json, digest: 'd' };
    const edited = reduce(napping, { type: 'call-edited', id: 'call_1_1_1', call });
    expect(nextAction(edited)).toEqual({ type: 'pass-time' });
  });

  test('are ended by a message, once', () => {
    const woken = after(napping, update('ask', { message: 'hello' }));
    expect(nextAction(woken)).toEqual({ type: 'pass-time' });
    const over = reduce(woken, { type: 'time-passed', at: 1_000 });
    expect(results(over)[0]).toBe('woken early by a message; the wait was to take 5 s');
    expect(over.turn.wokenBy).toBe(2);
    const again = replied({ ...over, open: true }, callReply(['nap', { seconds: 5 }]));
    expect(nextAction(again, undefined, 0).type).toBe('await-time');
    const second = after(again, update('ask', { message: 'more' }, 'u2'));
    expect(nextAction(second)).toEqual({ type: 'pass-time' });
    expect(reduce(napping, { type: 'time-passed', at: 9_000 }).turn).not.toHaveProperty('wokenBy');
  });

  test('run in parallel with calls, which are executed first', () => {
    const mixed = replied(start, callReply(['nap', { seconds: 5 }], ['look']));
    expect(nextAction(mixed)).toMatchObject({ type: 'run-calls', calls: [{ name: 'look' }] });
    const one = begun(config({ tools, toolCalls: 'sequential' }));
    const sequential = replied(one, callReply(['nap', { seconds: 5 }], ['look']));
    expect(nextAction(sequential)).toEqual({ type: 'await-time', until: 5_000 });
  });
});
