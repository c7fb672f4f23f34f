import { describe, expect, test } from 'vitest';
import { inlineCalls } from '../../src/core/calls/batch.js';
import { INLINE } from '../../src/core/interpret/inline-calls.js';
import { interpret } from '../../src/core/interpret/interpret.js';
import { nextAction } from '../../src/core/run/next-action.js';
import type { RunReadsResult } from '../../src/core/guards/recorded.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import type { RecordedReply } from '../../src/core/transcript/outcome.js';
import { fileTools } from '../../src/tools/files/file-tools.js';
import { after, update } from '../support/facts.js';
import { TOOLS, begun, callReply, config, toolDefinition } from '../support/scripts.js';

const tools = [
  ...TOOLS,
  toolDefinition('peek', 'read', { inline: true, attempts: 3 }),
  toolDefinition('scan', 'read', { inline: true }),
  toolDefinition('write', 'keyed', { inline: true }),
  toolDefinition('nap', 'read', { inline: true, kind: 'wait' }),
];

function afterReply(reply: RecordedReply, rest: Parameters<typeof config>[0] = {}): RunState {
  return reduce(begun(config({ tools, ...rest })), { type: 'model-replied', reply, at: 1 });
}

const idsOf = (state: RunState): readonly string[] => inlineCalls(state).map(({ id }) => id);
const read = (state: RunState, ...reads: RunReadsResult['reads']): RunState =>
  after(state, { type: 'completed', task: INLINE, result: { reads }, at: 2 });
const done = (call: string): RunReadsResult['reads'][number] => ({
  call,
  shown: 'x',
  result: { ok: true, text: `result of ${call}` },
});
const [FIRST, SECOND] = ['call_1_1_0', 'call_1_1_1'] as const;

describe('the calls of a reply', () => {
  test('are inline if all of them are allowed calls of inline tools', () => {
    expect(idsOf(afterReply(callReply(['peek'], ['scan', 1])))).toEqual([FIRST, SECOND]);
    expect(idsOf(afterReply(callReply(['peek'], ['look'])))).toEqual([]);
    expect(idsOf(afterReply(callReply(['put'])))).toEqual([]);
    expect(idsOf(afterReply(callReply(['write'])))).toEqual([]);
    expect(idsOf(afterReply(callReply(['nap', { seconds: 1 }])))).toEqual([]);
    expect(idsOf(begun(config({ tools })))).toEqual([]);
  });

  test('are not inline if the rules ask for a decision, or the provider does', () => {
    const reply = callReply(['peek'], ['peek', 1]);
    const asked = (part: object): RecordedReply => ({
      ...reply,
      calls: (reply.calls ?? []).map((call, n) => (n === 0 ? { ...call, ...part } : call)),
    });
    const verdict = { then: 'ask', why: 'x' } as const;
    expect(idsOf(afterReply(asked({ verdict })))).toEqual([]);
    expect(idsOf(afterReply(asked({ safety: [{ id: 's' }] })))).toEqual([]);
    expect(idsOf(afterReply(asked({ node: 'look' })))).toEqual([]);
  });

  test('are not inline one after another, except for a single one', () => {
    const rest = { toolCalls: 'sequential' } as const;
    expect(idsOf(afterReply(callReply(['peek'], ['scan']), rest))).toEqual([]);
    expect(idsOf(afterReply(callReply(['peek']), rest))).toEqual([FIRST]);
  });

  test('are not inline while other work is under way', () => {
    const state = afterReply(callReply(['peek']));
    expect(idsOf({ ...state, work: [{ name: 'undo:call_1_0_0', phase: 'waiting' }] })).toEqual([]);
  });
});

test('the tools of files that read are inline, and the one that writes is not', () => {
  const found = fileTools({ root: '.', write: true }).map(({ name, inline = false }) => [
    name,
    inline,
  ]);
  expect(found).toEqual([
    ['list_files', true],
    ['read_file', true],
    ['search_text', true],
    ['write_file', false],
  ]);
});

describe('inline calls that have ended', () => {
  test('have their results, and the batch is complete', () => {
    const state = read(afterReply(callReply(['peek'], ['scan'])), done(FIRST), done(SECOND));
    expect(nextAction(state)).toMatchObject({ type: 'call-model' });
    expect(state.transcript.messages.slice(-2).map(({ text }) => text)).toEqual([
      `result of ${FIRST}`,
      `result of ${SECOND}`,
    ]);
    expect(state.turn.spent.toolCalls).toBe(2);
  });

  test.each(['threw', 'slow', 'elsewhere'] as const)(
    'without a result (%s) begin as work',
    (why) => {
      const cut = { call: SECOND, shown: 'x', why };
      const state = read(afterReply(callReply(['peek'], ['scan'])), done(FIRST), cut);
      expect(nextAction(state)).toMatchObject({ type: 'run-calls', calls: [{ id: SECOND }] });
      expect(idsOf(state)).toEqual([]);
      // An execution that threw counts as an attempt.
      expect(state.work[0]?.tries).toBe(why === 'threw' ? 1 : undefined);
      expect(state.notInline).toEqual(why === 'slow' ? ['scan'] : undefined);
    },
  );

  test('of which one was slow are ordinary until the end of the segment', () => {
    const state = read(afterReply(callReply(['peek'], ['scan'])), {
      call: SECOND,
      shown: 'x',
      why: 'slow',
    });
    const again = { ...afterReply(callReply(['scan'])), notInline: state.notInline ?? [] };
    expect(idsOf(again)).toEqual([]);
    expect(idsOf(reduce(again, { type: 'segment-begun' }))).toEqual([FIRST]);
  });

  test('are all ordinary if the worker could not execute any', () => {
    const failure = { message: 'timeout', type: '', timedOut: true, details: [] };
    const before = afterReply(callReply(['peek'], ['scan']));
    const state = after(before, { type: 'failed', task: INLINE, failure, at: 2 });
    expect(state.notInline).toEqual(['peek', 'scan']);
    expect(nextAction(state)).toMatchObject({ type: 'run-calls', calls: { length: 2 } });
    // Nothing has been tried, so all attempts remain.
    expect(state.work).toEqual([
      { name: FIRST, phase: 'waiting' },
      { name: SECOND, phase: 'waiting' },
    ]);
  });

  test('count despite a cancellation that arrived meanwhile', () => {
    const cancelled = after(afterReply(callReply(['peek'])), update('cancelTurn'));
    const state = read(cancelled, done(FIRST));
    expect(nextAction(state)).toMatchObject({ type: 'interrupt' });
    expect(state.turn.spent.toolCalls).toBe(1);
  });

  test('of another run mean nothing', () => {
    const state = begun(config({ tools }));
    const fact = { type: 'completed', task: INLINE, result: { reads: [done(FIRST)] }, at: 1 };
    expect(interpret(state, { ...fact, type: 'completed' })).toEqual([]);
  });
});
