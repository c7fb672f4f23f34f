import { describe, expect, test } from 'vitest';
import { nextAction } from '../../src/core/run/next-action.js';
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
  workOf,
} from '../support/facts.js';
import { callReply, begun, config, toolDefinition } from '../support/scripts.js';

const tools = [toolDefinition('refund', 'once', { verify: true })];
const ID = 'call_1_1_0';
const asked = replied(begun(config({ tools })), callReply(['refund']));

describe('the verification of a call', () => {
  const state = after(asked, scheduled(toolTask(asked, 0)));
  const verify = { ...toolTask(state, 0), activity: 'runFunction' };
  const doubt = after(state, failed(toolTask(state, 0), 'gone'));
  const verifying = after(doubt, scheduled(verify));
  const lost = 'refund: the worker was lost or the call timed out (gone)';

  test('follows an unknown outcome', () => {
    const now = after(state, failed(toolTask(state, 0), 'gone'));
    expect(workOf(now, ID)).toEqual({ key: 'key 0', unknown: lost, phase: 'waiting' });
    expect(workOf(after(now, scheduled(verify)), ID)).toMatchObject({
      unknown: lost,
      phase: 'in-flight',
      as: 'verify',
    });
  });

  test('gives the call its result, or lets it run again', () => {
    const happened = { happened: true, result: { ok: true, text: 'refunded' } };
    expect(results(after(verifying, completed(verify, happened)))).toEqual(['refunded']);
    const again = after(verifying, completed(verify, { happened: false }));
    expect(workOf(again, ID)).toEqual({ key: 'key 0', retried: true, phase: 'waiting' });
    expect(nextAction(again).type).toBe('run-calls');
  });

  test('leaves the decision to a person if it does not know', () => {
    const asking = {
      key: 'key 0',
      phase: 'asking',
      request: { id: 'r1', kind: 'outcome_unknown', why: lost, raisedAt: 0 },
    };
    for (const fact of [
      completed(verify, { happened: 'unknown', message: 'no idea' }),
      completed(verify, { happened: true, result: { ok: false, text: 'no' } }),
      completed(verify, 'by hand'),
      failed(verify, 'it threw'),
      blocked(verify, 'credentials'),
    ]) {
      expect(workOf(after(verifying, fact), ID)).toEqual(asking);
    }
    expect(workOf(after(verifying, CANCEL, blocked(verify, 'storage')), ID)).toEqual(asking);
  });

  test('waits for the store, and for its turn after a cancel by `resume`', () => {
    expect(workOf(after(verifying, blocked(verify, 'storage')), ID)).toMatchObject({
      unknown: lost,
      block: { reason: 'storage' },
    });
    expect(workOf(after(verifying, canceled(verify)), ID)).toMatchObject({
      unknown: lost,
      phase: 'waiting',
    });
  });

  test('remembers how often the call did not start', () => {
    const task = toolTask(state, 0);
    const late = after(
      state,
      completed(task, { ok: 'not_started', message: 'x' }),
      scheduled(task),
    );
    const once = after(late, failed(task, 'gone'));
    expect(workOf(once, ID)).toMatchObject({ starts: 1, unknown: lost });
    expect(
      workOf(after(once, scheduled(verify), completed(verify, { happened: false })), ID),
    ).toMatchObject({ starts: 1 });
    expect(workOf(after(once, scheduled(verify), failed(verify, 'x')), ID)).toMatchObject({
      starts: 1,
      phase: 'asking',
    });
  });
});
