import { describe, expect, test } from 'vitest';
import type { CallResult } from '../../src/core/transcript/call-result.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import {
  callReply,
  begun,
  config,
  SHORT,
  toolDefinition,
  withResults,
} from '../support/scripts.js';
import { getOpenBatch } from '../../src/core/state/turn.js';

const FULL = { ...SHORT, historyEvents: 5_000 };
const ok = (id: string, text: string): CallResult => ({ id, ok: true, text, executed: true });

/** A batch of three calls whose second one has its result. */
function halfFinished(text = 'second', rest: Parameters<typeof config>[0] = {}): RunState {
  const asked = reduce(begun(config(rest)), {
    type: 'model-replied',
    reply: callReply(['look', 1], ['put', 2], ['look', 3]),
    at: 0,
  });
  return reduce(asked, { type: 'call-finished', result: ok('call_1_1_1', text), at: 0 });
}

describe('a half-finished batch', () => {
  test('stores and counts each result as it arrives, and adds none to the transcript yet', () => {
    const state = halfFinished();
    expect(getOpenBatch(state)?.results.map((result) => result?.text)).toEqual([
      undefined,
      'second',
      undefined,
    ]);
    expect(state.turn.spent.toolCalls).toBe(1);
    expect(state.transcript.messages.at(-1)).toMatchObject({ role: 'assistant' });
    const action = nextAction(state);
    expect(action.type === 'run-calls' && action.calls.map(({ id }) => id)).toEqual([
      'call_1_1_0',
      'call_1_1_2',
    ]);
  });

  test('adds its results in call order once it is complete, also in a later segment', () => {
    const begin = reduce(halfFinished(), { type: 'segment-begun' });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the value was just serialized
    const carried = JSON.parse(JSON.stringify(begin)) as RunState;
    const done = withResults(carried, [ok('call_1_1_2', 'third'), ok('call_1_1_0', 'first')]);
    expect(getOpenBatch(done)).toBeNull();
    expect(done.turn.spent.toolCalls).toBe(3);
    expect(done.transcript.messages.slice(-3).map(({ text }) => text)).toEqual([
      'first',
      'second',
      'third',
    ]);
  });

  test('gives each tool message the time at which its result arrived', () => {
    const asked = reduce(begun(config()), {
      type: 'model-replied',
      reply: callReply(['look', 1], ['put', 2], ['look', 3]),
      at: 1,
    });
    const arrived = [
      ['call_1_1_1', 20],
      ['call_1_1_2', 30],
      ['call_1_1_0', 50],
    ] as const;
    const state = arrived.reduce(
      (before, [id, at]) => reduce(before, { type: 'call-finished', result: ok(id, id), at }),
      asked,
    );
    const messages = state.transcript.messages.slice(-3);
    expect(messages.map(({ at }) => at)).toEqual([50, 20, 30]);
  });

  test('accepts one result per call, whatever arrives after it', () => {
    const state = halfFinished();
    expect(reduce(state, { type: 'call-finished', result: ok('call_1_1_1', 'again'), at: 0 })).toBe(
      state,
    );
    expect(reduce(state, { type: 'call-finished', result: ok('call_9_9_9', 'x'), at: 0 })).toBe(
      state,
    );
  });

  test('keeps the results that arrived before an interruption, and answers the rest', () => {
    const state = reduce(halfFinished(), { type: 'turn-interrupted', by: 'cancelTurn', at: 0 });
    const texts = state.transcript.messages.slice(-3).map(({ text }) => text);
    expect(texts[1]).toBe('second');
    expect(texts[0]).toContain('cancelled');
    expect(texts[2]).toContain('cancelled');
  });

  test('is passed to a new segment while the run is paused, unless it is too large', () => {
    const paused = (state: RunState): RunState => ({ ...state, paused: true });
    expect(nextAction(paused(halfFinished()), SHORT).type).toBe('await-resume');
    expect(nextAction(paused(halfFinished()), FULL).type).toBe('continue-as-new');
    expect(nextAction(paused(halfFinished('x'.repeat(600_000))), FULL).type).toBe('await-resume');
    // Calls that can be executed are executed first.
    expect(nextAction(halfFinished(), FULL).type).toBe('run-calls');
  });
});

test('a projection follows a run beyond any number of steps', () => {
  const segment = { steps: 1, bytes: 1 };
  const state: RunState = { ...halfFinished(), paused: true };
  const full = { ...state, config: { ...state.config, segment } };
  expect(nextAction(full).type).toBe('await-resume');
});

describe('a call that ends the turn', () => {
  const tools = [toolDefinition('put', 'keyed'), toolDefinition('done', 'read', { ends: true })];
  const asked = (
    rest: Parameters<typeof config>[0],
    ...calls: readonly (readonly [string, unknown])[]
  ): RunState =>
    reduce(begun(config({ tools, ...rest })), {
      type: 'model-replied',
      reply: callReply(...calls),
      at: 0,
    });
  const due = (state: RunState): unknown => {
    const action = nextAction(state);
    return action.type === 'run-calls' ? action.calls.map(({ id }) => id) : action.type;
  };

  test('is executed alone, wherever it is in the message', () => {
    expect(due(asked({}, ['put', 1], ['done', 2], ['put', 3]))).toEqual(['call_1_1_1']);
    expect(due(asked({}, ['done', 1], ['put', 2], ['done', 3]))).toEqual(['call_1_1_0']);
  });

  test('leaves the others to the next message if it fails', () => {
    const failed = withResults(asked({}, ['put', 1], ['done', 2]), [
      { id: 'call_1_1_1', ok: false, text: 'error: no', executed: true },
    ]);
    expect(nextAction(failed).type).toBe('call-model');
    expect(failed.transcript.messages.slice(-2).map(({ text }) => text)).toEqual([
      expect.stringContaining('another call in this message ends the turn'),
      'error: no',
    ]);
  });

  test('prevents no other call if its arguments are unreadable', () => {
    const bad = callReply(['put', 1], ['done', 2]);
    const problem = { type: 'invalid_arguments', message: 'no JSON' } as const;
    const calls = (bad.calls ?? []).map((call) =>
      call.name === 'done' ? { ...call, problem } : call,
    );
    const state = reduce(begun(config({ tools })), {
      type: 'model-replied',
      reply: { ...bad, calls },
      at: 0,
    });
    expect(due(state)).toEqual(['call_1_1_0']);
  });

  test('comes after the calls before it if calls are executed one by one', () => {
    const state = asked({ toolCalls: 'sequential' }, ['put', 1], ['done', 2], ['put', 3]);
    expect(due(state)).toEqual(['call_1_1_0']);
  });
});
