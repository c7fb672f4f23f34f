import { describe, expect, test } from 'vitest';
import { unloadedConfig } from '../../src/core/rules/limits.js';
import { limitsCost } from '../../src/core/interpret/activities.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { initialState } from '../../src/core/state/state.js';
import {
  after,
  blocked,
  CANCEL,
  canceled,
  completed,
  failed,
  scheduled,
  update,
  workOf,
} from '../support/facts.js';
import { config } from '../support/scripts.js';

describe('the load of an agent', () => {
  const empty = initialState(unloadedConfig('test'), { open: true });
  const local = { activity: 'loadAgent', input: { local: true } };
  const load = { activity: 'loadAgent', input: {} };
  const problem = { type: 'failed', reason: 'error', message: 'not on this worker' };
  const remote = after(empty, failed(local, 'gone'), scheduled(load));

  test('pins it', () => {
    const state = after(empty, completed(local, config()));
    expect([state.config, state.work]).toEqual([config(), []]);
    expect(nextAction(state).type).toBe('await-message');
    expect(nextAction(empty).type).toBe('load');
  });

  test('is tried on another worker if this one does not have it', () => {
    expect(workOf(after(empty, failed(local, 'gone')), 'agent')).toEqual({ phase: 'waiting' });
    const missing = { type: 'blocked', reason: 'agent_missing', message: 'no "test" here' };
    const learned = after(empty, failed(local, 'x', missing));
    expect(workOf(learned, 'agent')).toEqual({ missing: 'no "test" here', phase: 'waiting' });
    const late = after(learned, scheduled(load), {
      type: 'failed',
      task: load,
      failure: { message: 'late', type: '', timedOut: true, details: [] },
      at: 0,
    });
    expect(workOf(late, 'agent')).toMatchObject({
      block: { reason: 'agent_missing', message: 'no "test" here', until: 1_000 },
    });
    expect(after(empty, failed(local, 'x', problem)).work).toEqual([]);
  });

  test('takes as long as the worker needs', () => {
    const slow = { message: 'slow', type: 'AgentNeedsTime', timedOut: false, details: [problem] };
    const state = after(empty, { type: 'failed', task: local, failure: slow, at: 0 });
    expect(workOf(state, 'agent')).toEqual({ slow: true, phase: 'waiting' });
  });

  test('is blocked while no worker has it, or while the store is down', () => {
    const timedOut = { message: 'late', type: '', timedOut: true, details: [] };
    const lost = after(remote, { type: 'failed', task: load, failure: timedOut, at: 0 });
    const message = 'agent: no worker has loaded "test" in time; start one that has it';
    expect(workOf(lost, 'agent')).toMatchObject({ block: { reason: 'agent_missing', message } });
    const down = after(remote, blocked(load, 'storage', { blob: 'b' }));
    expect(workOf(down, 'agent')).toMatchObject({ block: { reason: 'storage', blob: 'b' } });
    for (const fact of [failed(load, 'x', problem), failed(load, 'x'), blocked(load, 'quota')]) {
      expect(after(remote, fact).work).toEqual([]);
    }
  });

  test('ends with the run', () => {
    const ended = after(remote, CANCEL);
    expect(after(ended, canceled(load)).work).toEqual([]);
    expect(after(ended, blocked(load, 'storage')).work).toEqual([]);
    expect(nextAction(after(ended, canceled(load))).type).toBe('finish');
  });

  test('is retried at once after a cancel by `resume`', () => {
    const down = after(remote, blocked(load, 'storage'), scheduled(load));
    expect(workOf(after(down, canceled(load)), 'agent')).toMatchObject({ phase: 'waiting' });
    expect(after(empty, canceled(load)).work).toEqual([]);
    const probe = { activity: 'loadAgent', input: { blocked: 'agent_missing' } };
    const probing = after(remote, blocked(load, 'agent_missing'), scheduled(probe));
    expect(workOf(after(probing, canceled(probe)), 'agent')).toMatchObject({
      block: { until: 1_000 },
    });
    const resumed = after(probing, update('resume'), canceled(probe));
    expect(workOf(resumed, 'agent')).toEqual({ probeMs: 1_000, phase: 'waiting' });
  });

  test('before a turn gives the run the newest version, or leaves the one it has', () => {
    const fresh = { ...config(), definition: { ...config().definition, hash: 'new' } };
    const idle = { ...initialState(config(), { open: true }) };
    const asked = after(idle, update('ask', { message: 'x', refresh: true }));
    expect(nextAction(asked).type).toBe('refresh-agent');
    const renewed = after(asked, completed(local, fresh));
    expect(renewed.config.definition.hash).toBe('new');
    expect(nextAction(renewed).type).toBe('begin-turn');
    const loading = after(asked, failed(local, 'x'), scheduled(load));
    expect(workOf(after(loading, blocked(load, 'storage')), 'agent')).toHaveProperty('block');
    for (const fact of [blocked(load, 'agent_missing'), failed(load, 'x')]) {
      const kept = after(loading, fact);
      expect([kept.config.definition.hash, kept.work, nextAction(kept).type]).toEqual([
        'h',
        [],
        'begin-turn',
      ]);
    }
    const elsewhere = after(loading, completed(load, fresh));
    expect([elsewhere.config.definition.hash, elsewhere.work]).toEqual(['new', []]);
    const wrong = after(loading, completed(load, { definition: 7 }));
    expect([wrong.config.definition.hash, wrong.work]).toEqual(['h', []]);
  });
});

test.each<[unknown, boolean]>([
  [{ costUsd: 1 }, true],
  [{ run: { costUsd: 1 } }, true],
  [{ tokens: 1, run: { tokens: 1 } }, false],
  [{ costUsd: null, run: null }, false],
  [null, false],
  ['1 USD', false],
])('limits need the price of the model only if they are about cost: %j', (limits, isNeeded) => {
  expect(limitsCost(limits)).toBe(isNeeded);
});
