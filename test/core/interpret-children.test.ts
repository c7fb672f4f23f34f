import { describe, expect, test } from 'vitest';
import type { Fact } from '../../src/core/run/events.js';
import { nextAction } from '../../src/core/run/next-action.js';
import type { Outcome, OutcomeEnd } from '../../src/core/transcript/outcome.js';
import {
  after,
  CANCEL,
  canceled,
  completed,
  failed,
  replied,
  results,
  scheduled,
  update,
  workOf,
} from '../support/facts.js';
import { callReply, begun, config, toolDefinition } from '../support/scripts.js';
import { getOpenBatch } from '../../src/core/state/turn.js';

const calls = { agent: 'expert', parentClose: 'request_cancel' } as const;
const expert = toolDefinition('expert', 'keyed', { kind: 'agent', calls });
const ID = 'call_1_1_0';
const asked = replied(begun(config({ tools: [expert] })), callReply(['expert']));
const child = { activity: 'agent', input: { call: ID } };
const follow = { activity: 'followRun', input: { run: `caller/x/${ID}-0123456789abcdef` } };
const running = after(asked, scheduled(child));
const following = after(running, { type: 'child-existed', call: ID, at: 0 }, scheduled(follow));

const usage = { inputTokens: 7, outputTokens: 3, cachedTokens: 0, costUsd: null };
const outcome = (end: OutcomeEnd): Outcome => ({
  ...end,
  answer: 'well',
  output: null,
  steps: 1,
  toolCalls: 0,
  usage,
  segments: 1,
});
const COMPLETED = outcome({ status: 'completed', reason: 'answer' });
const STOPPED = outcome({ status: 'stopped', reason: 'steps' });
const FAILED = outcome({ status: 'failed', reason: 'error' });
const ended = (found: Outcome | null, message = ''): Fact => ({
  type: 'child-ended',
  call: ID,
  outcome: found,
  message,
  at: 9,
});

describe('the run of a called agent', () => {
  test('is in flight until it ends, and its answer is the result', () => {
    expect(workOf(running, ID)).toEqual({ phase: 'in-flight', as: 'child' });
    const done = after(running, ended(COMPLETED));
    expect([results(done), done.work]).toEqual([['well'], []]);
    expect(done.transcript.messages.at(-1)?.at).toBe(9);
    expect(done.total.usage.inputTokens).toBe(17);
    expect(results(after(running, ended(STOPPED)))[0]).toContain('[stopped: steps]');
    expect(results(after(running, ended(FAILED)))[0]).toContain('agent_failed');
    expect(results(after(running, ended(null, 'terminated')))[0]).toContain('terminated');
  });

  test('reports what it has lost as losses of its caller, also if it failed', () => {
    const reports = [
      { type: 'storage_lost', attempt: 1, waitMs: 0, at: 9, message: 'agent expert: a result' },
    ];
    for (const end of [COMPLETED, FAILED]) {
      const lost = after(running, ended({ ...end, lost: ['a result'] }));
      expect(lost.turn.reports).toEqual(reports);
      expect(after(running, ended(end)).turn.reports).toEqual([]);
    }
  });

  test('is followed if it existed before', () => {
    const existed = after(running, { type: 'child-existed', call: ID, at: 0 });
    expect(workOf(existed, ID)).toEqual({ phase: 'waiting' });
    expect(workOf(following, ID)).toEqual({ phase: 'in-flight', as: 'follow' });
    const done = after(following, completed(follow, { type: 'ended', outcome: COMPLETED }, 9));
    expect([results(done), done.work]).toEqual([['well'], []]);
    expect(done.transcript.messages.at(-1)?.at).toBe(9);
  });

  test('starts again if it is lost, and fails the call if it has another origin', () => {
    const lost = after(following, completed(follow, { type: 'lost' }));
    expect(workOf(lost, ID)).toEqual({ again: true, phase: 'waiting' });
    expect(workOf(after(lost, scheduled(child)), ID)).toMatchObject({ again: true, as: 'child' });
    const over = after(following, completed(follow, { type: 'other', running: false }));
    expect(workOf(over, ID)).toEqual({ phase: 'waiting' });
    const other = after(following, completed(follow, { type: 'other', running: true }));
    expect(results(other)[0]).toContain('Workflow execution already started');
  });

  test('that cannot be followed fails the call', () => {
    expect(results(after(following, failed(follow, 'no server')))[0]).toContain('no server');
    expect(results(after(following, canceled(follow)))[0]).toContain('canceled');
    expect(results(after(following, completed(follow, { type: 'x' })))[0]).toContain('by hand');
  });

  test('that ends despite an interruption counts if it has an answer; its usage always counts', () => {
    for (const by of [CANCEL, update('cancelTurn')]) {
      const off = after(running, by);
      const result = (found: Outcome | null) => getOpenBatch(after(off, ended(found)))?.results[0];
      expect(result(COMPLETED)).toMatchObject({ ok: true, text: 'well', usage });
      expect(result(STOPPED)).toMatchObject({ ok: true, usage });
      expect(result(FAILED)).toMatchObject({ ok: false, usage });
      expect(result(FAILED)?.text).toContain('interrupted during execution');
      expect(result(null)?.text).toContain('interrupted during execution');
      expect(result(null)).not.toHaveProperty('usage');
      expect(nextAction(after(off, ended(COMPLETED))).type).toBe('interrupt');
      expect(after(off, ended(FAILED)).work).toEqual([]);
    }
  });

  test('is ignored if it is no longer known', () => {
    const done = after(running, ended(COMPLETED));
    const facts: readonly Fact[] = [
      ended(COMPLETED),
      { type: 'child-existed', call: ID, at: 0 },
      completed(follow, { type: 'lost' }),
      failed(follow, 'x'),
    ];
    for (const fact of facts) expect(after(done, fact)).toEqual(done);
    const without = { ...running, work: [] };
    expect(after(without, ended(COMPLETED))).toEqual(without);
  });
});
