import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { CheckedRun } from '../../src/testing/matchers.js';
// oxlint-disable-next-line import/no-unassigned-import -- it adds the matchers to vitest
import '../../src/vitest.js';

const usage = { inputTokens: 90, outputTokens: 10, cachedTokens: 0, costUsd: 0.02 };
const run: CheckedRun = {
  outcome: {
    status: 'completed',
    reason: 'answer',
    answer: 'Refunded once.',
    output: null,
    steps: 3,
    toolCalls: 1,
    usage,
    segments: 1,
  },
  transcript: {
    messages: [
      { role: 'user', text: 'Refund 17 twice' },
      { role: 'assistant', text: 'Refunded once.' },
    ],
  },
  effects: [{ tool: 'refund', input: { order: 17, euros: 20 } }],
  requests: [{ kind: 'approval', tool: 'refund', arguments: '{"order":17,"euros":80}' }],
};

/** Returns the message with which an expectation fails; null if it holds. */
function failure(expectation: () => void): string | null {
  try {
    expectation();
    return null;
  } catch (error) {
    return error instanceof Error ? stripVTControlCharacters(error.message) : String(error);
  }
}

describe('the matchers of a run', () => {
  test('compare how it ended', () => {
    expect(run).toEndAs('completed');
    expect(run).toEndAs('answer');
    expect(run).toEndAs({ status: 'completed', usage: { costUsd: 0.02 } });
    expect(run).not.toEndAs('failed');
    const text = failure(() => expect(run).toEndAs({ answer: 'Refunded twice.', steps: 3 }));
    expect(text).toContain('the run did not end as expected: it is completed (answer)');
    expect(text).toContain('-   "answer": "Refunded twice."');
    expect(text).toContain('+   "answer": "Refunded once."');
    expect(failure(() => expect(run).not.toEndAs('completed'))).toContain('which it should not');
  });

  test('find executed calls by a part of their input', () => {
    expect(run).toHaveCalled('refund');
    expect(run).toHaveCalled('refund', { order: 17 }, { times: 1 });
    expect(run).not.toHaveCalled('refund', { order: 18 });
    expect(run).not.toHaveCalled('order');
    expect(failure(() => expect(run).toHaveCalled('refund', { order: 18 }))).toBe(
      'expected the run to call refund {"order":18}; calls like this: 0\nit executed:\n  refund {"order":17,"euros":20}',
    );
    const mistyped = failure(() => expect(run).toHaveCalled('refund', {}, { time: 2 } as never));
    expect(mistyped).toContain('toHaveCalled: "time" is not an option; did you mean times?');
    const twice = failure(() => expect(run).toHaveCalled('refund', {}, { times: 2 }));
    expect(twice).toContain('to call refund 2 times; calls like this: 1');
    const idle = { ...run, effects: [] };
    expect(failure(() => expect(idle).toHaveCalled('refund'))).toContain('it executed no call');
  });

  test('find requests by tool or kind', () => {
    expect(run).toHaveAsked('refund', { euros: 80 });
    expect(run).toHaveAsked('approval');
    expect(run).not.toHaveAsked('question');
    const text = failure(() => expect(run).toHaveAsked('refund', { euros: 20 }));
    expect(text).toContain('it asked:\n  approval of refund {"order":17,"euros":80}');
  });

  test('find what the agent has said', () => {
    expect(run).toHaveSaid('once');
    expect(run).toHaveSaid(/^Refunded/);
    expect(run).not.toHaveSaid('Refund 17 twice');
    expect(failure(() => expect(run).toHaveSaid('twice'))).toContain(
      'it said:\n  "Refunded once."',
    );
  });

  test('bound what it cost', () => {
    expect(run).toCost({ steps: 3, toolCalls: 1, tokens: 100, costUsd: 0.02 });
    expect(run).not.toCost({ tokens: 99 });
    expect(failure(() => expect(run).toCost({ steps: 2, tokens: 99 }))).toBe(
      'the run cost more than expected:\n  steps: at most 2, got 3\n  tokens: at most 99, got 100',
    );
    const unknown = { ...run, outcome: { ...run.outcome, usage: { ...usage, costUsd: null } } };
    expect(failure(() => expect(unknown).toCost({ costUsd: 1 }))).toContain(
      'costUsd: at most 1, got an unknown price',
    );
    expect(failure(() => expect(unknown).not.toCost({ costUsd: 1 }))).toContain(
      'its price is unknown',
    );
    expect(unknown).not.toCost({ costUsd: 1, tokens: 99 });
  });

  test('show what was left over of a script, and that a run has not ended', () => {
    expect(run).toUseWholeScript();
    const left = { ...run, unused: ['model: 2 of 5 replies'] };
    expect(left).not.toUseWholeScript();
    expect(failure(() => expect(left).toUseWholeScript())).toBe(
      'the run has left over:\n  model: 2 of 5 replies',
    );
    const missing = ['model: the model was asked 2 times; the script has 1 reply'];
    expect({ ...run, missing }).not.toUseWholeScript();
    expect(failure(() => expect({ ...left, missing }).toUseWholeScript())).toBe(
      `the run has left over:\n  model: 2 of 5 replies\nthe run needed more than its script has:\n  ${missing[0]}`,
    );
    for (const check of [
      () => expect({ ...run, outcome: null }).toEndAs('completed'),
      () => expect({ ...run, outcome: null }).not.toEndAs('completed'),
      () => expect({ ...run, outcome: null }).toCost({ steps: 1 }),
    ]) {
      expect(failure(check)).toBe('the run has not ended: it has no outcome');
    }
  });
});

describe('a run that failed', () => {
  const outcome = {
    status: 'failed',
    answer: null,
    output: null,
    steps: 0,
    toolCalls: 0,
    usage,
    segments: 1,
  } as const;
  const error = 'limits.costUsd: the price of model "m" is unknown';
  const idle = { transcript: { messages: [] }, effects: [], requests: [], unused: ['model: 1'] };
  const unbegun: CheckedRun = { ...idle, outcome: { ...outcome, reason: 'input', error } };
  const later: CheckedRun = { ...idle, outcome: { ...outcome, reason: 'error', error: 'no room' } };

  test('says so in the message of every matcher', () => {
    for (const [failed, end] of [
      [unbegun, `the run failed (input): ${error}`],
      [later, 'the run failed (error): no room'],
    ] as const) {
      for (const check of [
        () => expect(failed).toHaveCalled('refund'),
        () => expect(failed).toHaveAsked('refund'),
        () => expect(failed).toHaveSaid('Refunded'),
        () => expect(failed).toUseWholeScript(),
        () => expect(failed).toCost({ tokens: 1 }),
        () => expect(failed).not.toEndAs('failed'),
      ]) {
        expect(failure(check)?.split('\n').at(-1)).toBe(end);
      }
    }
  });

  test('by its input proves nothing about what the agent does not do', () => {
    for (const check of [
      () => expect(unbegun).not.toHaveCalled('refund'),
      () => expect(unbegun).not.toHaveAsked('refund'),
      () => expect(unbegun).not.toHaveSaid('Refunded'),
      () => expect(unbegun).not.toUseWholeScript(),
      () => expect(unbegun).not.toCost({ tokens: 1 }),
    ]) {
      expect(failure(check)).toContain(`the run failed (input): ${error}`);
    }
    expect(later).not.toHaveCalled('refund');
    expect(unbegun).not.toEndAs('completed');
    expect(unbegun).toHaveCalled('refund', {}, { times: 0 });
  });
});

test.each([
  ['a promise', Promise.resolve({}), 'expect: expected a run, got a promise; await it'],
  ['null', null, 'expect: expected a run of runInMemory or rerun, got null'],
  ['an object without its fields', {}, 'expect: expected a run of runInMemory or rerun, got {}'],
])('%s is no run, for every matcher and its opposite', (_what, value, message) => {
  expect(() => expect(value).toUseWholeScript()).toThrow(message);
  expect(() => expect(value).not.toHaveCalled('refund')).toThrow(message);
  expect(() => expect(value).not.toHaveAsked('refund')).toThrow(message);
  expect(() => expect(value).not.toHaveSaid('refund')).toThrow(message);
  expect(() => expect(value).toEndAs('completed')).toThrow(message);
  expect(() => expect(value).toCost({ steps: 1 })).toThrow(message);
});

test('a bound that does not exist is named', () => {
  const bounds = { step: 1 } as object;
  expect(() => expect(run).toCost(bounds)).toThrow(
    'toCost: expected steps, toolCalls, tokens, costUsd, got "step"; did you mean steps?',
  );
});

test('an outcome alone is enough for how a run ended and what it cost', () => {
  const { outcome } = run;
  for (const given of [outcome, { outcome }]) {
    expect(given).toEndAs('completed');
    expect(given).not.toEndAs('failed');
    expect(given).toCost({ steps: 3, costUsd: 0.05 });
    expect(given).not.toCost({ steps: 2 });
    expect(() => expect(given).toHaveCalled('refund')).toThrow(
      'it lacks effects and transcript, which the outcome does not have',
    );
    expect(() => expect(given).toHaveAsked('refund')).toThrow('it lacks effects and requests');
  }
});
