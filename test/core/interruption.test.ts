import { describe, expect, test } from 'vitest';
import { closeFailedTurn } from '../../src/core/interpret/loop.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RequestKind } from '../../src/core/transcript/request.js';
import type { RunState } from '../../src/core/state/state.js';
import {
  after,
  blocked,
  completed,
  replied,
  results,
  scheduled,
  toolTask,
  update,
} from '../support/facts.js';
import { runWithCall } from '../support/pending-call.js';
import { callReply, begun, config, textReply } from '../support/scripts.js';
import { isRepairing, getOutcome } from '../../src/core/state/turn.js';

const start = begun(config());
const interrupt = (state: RunState, by: 'cancel' | 'cancelTurn' | 'wallMs'): RunState =>
  reduce(state, { type: 'turn-interrupted', by, at: 7 });

describe('an interruption', () => {
  const two = (): RunState => replied(start, callReply(['look'], ['put']));

  test('replaces a weaker one, and never a stronger one', () => {
    const request = (state: RunState, by: 'cancelTurn' | 'wallMs') =>
      reduce(state, { type: 'interruption-requested', by });
    expect(request(start, 'wallMs').turn.interruption).toBe('wallMs');
    expect(request(request(start, 'wallMs'), 'cancelTurn').turn.interruption).toBe('cancelTurn');
    expect(request(request(start, 'cancelTurn'), 'wallMs').turn.interruption).toBe('cancelTurn');
  });

  test('gives each open call a result, and closes the batch only when all have stopped', () => {
    const state = two();
    const running = after(
      state,
      scheduled(toolTask(state, 0)),
      scheduled(toolTask(state, 1)),
      update('cancelTurn'),
    );
    const first = after(running, completed(toolTask(state, 0), { ok: true, text: 'seen' }));
    const second = after(first, completed(toolTask(state, 1), { ok: true, text: 'put' }));
    expect(results(second)).toEqual([]);
    const over = interrupt(second, 'cancelTurn');
    expect(results(over)).toEqual(['seen', 'put']);
    expect(over.transcript.messages.at(-1)?.at).toBe(7);
    expect(over.turn).not.toHaveProperty('interruption');
    expect(getOutcome(over)).toMatchObject({ status: 'cancelled', toolCalls: 2 });
  });

  test('gives each call that was not executed the reason', () => {
    expect(results(interrupt(two(), 'cancel'))).toEqual(
      Array(2).fill('{"error":{"type":"cancelled","message":"canceled by a person"}}'),
    );
    const late = interrupt(two(), 'wallMs');
    expect(results(late)[0]).toContain('interrupted by the time limit');
    expect(late.turn).toMatchObject({ limit: 'wallMs', phase: { type: 'deciding' } });
    expect(late.turn.spent.toolCalls).toBe(0);
  });

  test('counts a call that had begun and waits, unless it did not start or first needed approval', () => {
    const state = two();
    const [look, put] = [toolTask(state, 0), toolTask(state, 1)];
    const waits = after(
      state,
      scheduled(look),
      blocked(look, 'storage'),
      scheduled(put),
      completed(put, { ok: 'not_started', message: '' }),
    );
    const over = interrupt(waits, 'cancelTurn');
    expect(over.work).toEqual([]);
    expect(over.turn.spent.toolCalls).toBe(1);
    expect(results(over)[0]).toContain('interrupted during execution');
    expect(results(over)[1]).toContain('not executed: the run was interrupted before it');
    const spent = (work: RunState['work'][number]): number =>
      interrupt({ ...state, work: [work] }, 'cancelTurn').turn.spent.toolCalls;
    const asking = (kind: RequestKind): number => {
      const request = { id: 'r1', kind, why: 'x', raisedAt: 0 } as const;
      return spent({ name: 'call_1_1_0', phase: 'asking', request });
    };
    expect(asking('safety_check')).toBe(0);
    expect(asking('approval')).toBe(0);
    expect(asking('question')).toBe(0);
    expect(asking('tool_changed')).toBe(0);
    expect(asking('outcome_unknown')).toBe(1);
    expect(spent({ name: 'call_1_1_0', approved: true, phase: 'waiting' })).toBe(0);
  });

  test('of a call whose MCP server has asked something counts only if it was called again', () => {
    const asks = [{ key: 'k', message: 'Which seat?' }];
    const work = {
      name: 'call_1_1_0',
      phase: 'waiting',
      asked: { asks, answers: [], rounds: 1 },
    } as const;
    const stop = (rest: { readonly starts?: number }): RunState =>
      interrupt({ ...two(), work: [{ ...work, ...rest }] }, 'cancelTurn');
    expect(results(stop({}))[0]).toContain('not executed: the run was interrupted before it');
    expect(stop({}).turn.spent.toolCalls).toBe(0);
    expect(results(stop({ starts: 1 }))[0]).toContain('interrupted during execution');
    expect(stop({ starts: 1 }).turn.spent.toolCalls).toBe(1);
  });

  test('of a closing call ends the turn with a composed answer', () => {
    const closing = {
      ...start,
      turn: { ...start.turn, phase: { type: 'closing', reason: 'steps' } as const },
    };
    expect(getOutcome(interrupt(closing, 'wallMs'))).toMatchObject({
      status: 'stopped',
      reason: 'steps',
    });
    expect(getOutcome(interrupt(closing, 'cancel'))?.status).toBe('cancelled');
  });

  test('drops a repair, and has no effect between turns', () => {
    const branch = { messages: 1, head: start.transcript.head, tokens: 5, promptTokens: 6 };
    const repairing = {
      ...start,
      turn: { ...start.turn, phase: { type: 'repairing', branch } as const },
    };
    expect(isRepairing(interrupt(repairing, 'wallMs'))).toBe(false);
    const over = replied(start, textReply('hi'));
    expect(interrupt(over, 'cancel')).toEqual(over);
  });
});

test('a fault of the engine fails the turn, and its open calls have results', () => {
  const state = runWithCall('look');
  const running = after(state, scheduled(toolTask(state, 0)));
  const closed = closeFailedTurn(running, { message: 'a fault', at: 5 });
  expect(getOutcome(closed)).toMatchObject({ status: 'failed', reason: 'error', error: 'a fault' });
  expect(closed.work).toEqual([]);
  expect(results(closed)).toEqual([expect.stringContaining('interrupted during execution')]);
});
