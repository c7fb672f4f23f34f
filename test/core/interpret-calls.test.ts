import { describe, expect, test } from 'vitest';
import { nextAction } from '../../src/core/run/next-action.js';
import type { RunState } from '../../src/core/state/state.js';
import type { RequestedCall } from '../../src/core/transcript/messages.js';
import {
  after,
  blocked,
  CANCEL,
  canceled,
  completed,
  failed,
  replied,
  results,
  scheduled,
  toolTask,
  update,
  workOf,
} from '../support/facts.js';
import { callReply, begun, config, textReply } from '../support/scripts.js';
import { getOpenBatch } from '../../src/core/state/turn.js';

const start = begun(config());
const ID = 'call_1_1_0';

/** A run that executes one call of this tool. */
function executing(name: string, rest: Partial<RequestedCall> = {}): RunState {
  const [call] = callReply([name]).calls ?? [];
  const asked = replied(start, { ...callReply(), calls: call ? [{ ...call, ...rest }] : [] });
  return after(asked, scheduled(toolTask(asked, 0)));
}
const timedOut = (state: RunState, message: string) => {
  const failure = { message, type: '', timedOut: true, details: [] };
  return after(state, { type: 'failed', task: toolTask(state, 0), failure, at: 0 });
};

describe('a call', () => {
  test('is in flight from when it is scheduled, and has the result of its tool', () => {
    const state = executing('look');
    expect(workOf(state, ID)).toEqual({ phase: 'in-flight', as: 'attempt' });
    const task = toolTask(state, 0);
    const artifact = { name: 'rows', blob: { sha256: 'a'.repeat(64), bytes: 1 }, kind: 'array' };
    const done = after(state, completed(task, { ok: true, text: 'seen', artifact }, 9));
    expect(done.work).toEqual([]);
    expect(done.transcript.messages.at(-1)).toMatchObject({ role: 'tool', callId: ID, at: 9 });
    expect(done.artifacts).toMatchObject([{ name: 'rows', call: ID, tool: 'look' }]);
    expect(done.turn.spent.toolCalls).toBe(1);
    expect(results(after(state, completed(task, { ok: false, text: 'an error' })))).toEqual([
      'an error',
    ]);
  });

  test('is gone when a late fact about it arrives', () => {
    const state = executing('look');
    const task = toolTask(state, 0);
    const done = after(state, completed(task, { ok: true, text: 'seen' }));
    for (const fact of [
      completed(task, { ok: true, text: 'x' }),
      failed(task, 'x'),
      canceled(task),
    ]) {
      expect(after(done, fact)).toEqual(done);
    }
  });

  test.each(['tool_missing', 'tool_changed', 'credentials', 'storage'])(
    'is blocked by %s',
    (reason) => {
      const state = executing('pay');
      const next = after(
        state,
        blocked(toolTask(state, 0), reason, { definition: 'd', blob: 'b' }, 5),
      );
      const until = { tool_missing: 1_005, storage: 5 }[reason] ?? 30_005;
      expect(workOf(next, ID)).toMatchObject({
        phase: 'waiting',
        block: { reason, definition: 'd', until },
      });
      expect(getOpenBatch(next)).not.toBeNull();
    },
  );

  test('looks for its missing tool every second, because a search costs nothing', () => {
    const state = executing('look');
    const find = toolTask(state, 0, { blocked: 'tool_missing', find: true });
    const missing = after(state, blocked(toolTask(state, 0), 'tool_missing'));
    const searching = after(missing, scheduled(find));
    expect(workOf(searching, ID)).toMatchObject({ as: 'find', block: { reason: 'tool_missing' } });
    const again = after(searching, blocked(find, 'tool_missing', {}, 50_000));
    expect(workOf(again, ID)).toMatchObject({ probeMs: 1_000, block: { until: 51_000 } });
    const found = after(searching, completed(find, { ok: true, text: '' }));
    expect(workOf(found, ID)).toMatchObject({ found: true, phase: 'waiting' });
    expect(found.turn.spent.toolCalls).toBe(0);
    expect(
      workOf(
        after(found, scheduled(toolTask(state, 0)), blocked(toolTask(state, 0), 'tool_missing')),
        ID,
      ),
    ).not.toHaveProperty('found');
  });

  test('that fails or loses its worker has an error for the model if it may be repeated', () => {
    const state = executing('look');
    expect(results(after(state, failed(toolTask(state, 0), 'it threw')))).toEqual([
      '{"error":{"type":"tool_error","message":"it threw"}}',
    ]);
    expect(results(timedOut(state, 'heartbeat'))).toEqual([
      '{"error":{"type":"timeout","message":"look: the worker was lost or the call timed out (heartbeat)"}}',
    ]);
  });

  test('of a `once` tool that loses its worker waits for a person, whatever the failure', () => {
    const state = executing('pay');
    const why = 'pay: the worker was lost or the call timed out (gone)';
    const request = { id: 'r1', kind: 'outcome_unknown', why, raisedAt: 0 };
    const asking = { key: 'key 0', phase: 'asking', request };
    for (const lost of [
      timedOut(state, 'gone'),
      after(state, failed(toolTask(state, 0), 'gone')),
    ]) {
      expect(workOf(lost, ID)).toEqual(asking);
    }
    const unknown = after(state, completed(toolTask(state, 0), { ok: 'unknown', message: 'hm' }));
    expect(workOf(unknown, ID)).toEqual({ ...asking, request: { ...request, why: 'hm' } });
  });

  test('that was completed by hand with another result counts as failed', () => {
    const state = executing('pay');
    expect(workOf(after(state, completed(toolTask(state, 0), { ok: 'maybe' })), ID)).toMatchObject({
      phase: 'asking',
    });
    const read = executing('look');
    expect(results(after(read, completed(toolTask(read, 0), 7)))[0]).toMatch(/tool_error.*by hand/);
  });

  test('that does not start is tried eight times, with growing delays', () => {
    let state = executing('pay');
    const task = toolTask(state, 0);
    const starts: unknown[] = [];
    const end = completed(task, { ok: 'not_started', message: 'no input' }, 100);
    for (let n = 0; n < 7; n += 1) {
      state = after(state, end);
      expect(workOf(state, ID)).toMatchObject({ phase: 'waiting' });
      starts.push(workOf(state, ID)?.['startAt']);
      state = after(state, scheduled(task));
      expect(workOf(state, ID)).toEqual({ starts: n + 1, phase: 'in-flight', as: 'attempt' });
    }
    expect(starts).toEqual([1_100, 2_100, 4_100, 8_100, 16_100, 32_100, 64_100]);
    expect(results(after(state, end))[0]).toContain('not executed: no input');
  });
});

test.each([
  ['succeeded', { ok: true, text: 'seen' }],
  ['failed', { ok: false, text: 'an error' }],
])('what could not be stored of a call that %s is reported', (_, result) => {
  const reports = [{ type: 'storage_lost', attempt: 1, waitMs: 0, at: 1, message: 'full' }];
  const state = executing('look');
  const lost = after(state, completed(toolTask(state, 0), { ...result, reports }));
  expect(lost.turn.reports).toEqual(reports);
  expect(lost.work).toEqual([]);
  const whole = after(state, completed(toolTask(state, 0), result));
  expect(whole.turn.reports).toEqual([]);
});

test('a keyed call may have taken effect if it timed out, but not if its tool failed', () => {
  const state = executing('put');
  expect(workOf(timedOut(state, 'gone'), ID)).toMatchObject({ phase: 'asking' });
  expect(results(after(state, failed(toolTask(state, 0), 'it threw')))[0]).toContain('it threw');
});

describe('an interruption', () => {
  test('cancels a call, and reports whether it may have taken effect', () => {
    const read = executing('look');
    expect(results(after(read, update('cancelTurn'), canceled(toolTask(read, 0))))).toEqual([]);
    const ended = after(read, update('cancelTurn'), canceled(toolTask(read, 0)));
    expect(getOpenBatch(ended)?.results[0]).toMatchObject({ ok: false, executed: true });
    expect(getOpenBatch(ended)?.results[0]?.text).toContain('interrupted during execution"');
    const paid = executing('pay');
    const canceledPay = after(paid, CANCEL, canceled(toolTask(paid, 0)));
    expect(getOpenBatch(canceledPay)?.results[0]?.text).toContain(
      'whether it took effect is unknown',
    );
  });

  test('gives a call that fails meanwhile its result, and blocks nothing', () => {
    const state = executing('look');
    const next = after(state, CANCEL, blocked(toolTask(state, 0), 'tool_missing'));
    expect(next.work).toEqual([]);
    expect(getOpenBatch(next)?.results[0]?.text).toContain('tool_error');
  });

  test('takes effect when nothing is in flight', () => {
    const state = after(executing('look'), update('cancelTurn'));
    expect(nextAction(state)).toEqual({ type: 'await-work' });
    expect(nextAction(after(state, canceled(toolTask(state, 0))))).toEqual({
      type: 'interrupt',
      by: 'cancelTurn',
    });
    expect(
      nextAction(after(state, completed(toolTask(state, 0), { ok: true, text: 'x' }))).type,
    ).toBe('interrupt');
  });
});

describe('a canceled activity without an interruption', () => {
  test('leaves a call that may be repeated to the next attempt', () => {
    const state = executing('look');
    expect(workOf(after(state, canceled(toolTask(state, 0))), ID)).toEqual({ phase: 'waiting' });
  });

  test('that has ended before leaves the call to its next attempt', () => {
    const state = executing('pay');
    const task = toolTask(state, 0);
    const waits = after(state, completed(task, { ok: 'not_started', message: 'no input' }));
    expect(workOf(after(waits, canceled(task)), ID)).toEqual(workOf(waits, ID));
  });

  test('leaves a `once` call to a person, unless it only looked for a worker', () => {
    const state = executing('pay');
    const why = 'pay: the worker was lost or the call timed out (the activity was canceled)';
    expect(workOf(after(state, canceled(toolTask(state, 0))), ID)).toMatchObject({
      phase: 'asking',
      request: { kind: 'outcome_unknown', why },
    });
    const find = toolTask(state, 0, { blocked: 'tool_missing', find: true });
    const searching = after(state, blocked(toolTask(state, 0), 'tool_missing'), scheduled(find));
    expect(workOf(after(searching, canceled(find, 3)), ID)).toMatchObject({
      phase: 'waiting',
      block: { until: 3 },
    });
  });
});

test('facts about unknown activities and calls are ignored', () => {
  const state = executing('look');
  for (const activity of ['askRun', 'somebody else’s']) {
    const task = { activity, input: {} };
    for (const fact of [scheduled(task), completed(task, {}), failed(task, 'x'), canceled(task)]) {
      expect(after(state, fact)).toEqual(state);
    }
  }
  for (const activity of ['runTool', 'runFunction', 'followRun', 'checkBlob']) {
    const task = { activity, input: null };
    const result = activity === 'runFunction' ? { happened: false } : { ok: true, text: '' };
    for (const fact of [completed(task, result), failed(task, 'x'), canceled(task)]) {
      expect(after(state, fact)).toEqual(state);
    }
  }
  expect(
    after(state, completed({ activity: 'callModel', input: null }, textReply('x'))).turn.spent
      .steps,
  ).toBe(2);
});
