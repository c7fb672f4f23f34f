import { describe, expect, test } from 'vitest';
import type { Fact, Task } from '../../src/core/run/events.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { getOutcome } from '../../src/core/state/turn.js';
import {
  after,
  blocked,
  canceled,
  completed,
  failed,
  model,
  results,
  scheduled,
  toolTask,
  update,
  workOf,
} from '../support/facts.js';
import { node, RUN } from '../support/graph-agent.js';
import { afterNextAction, ID, requestOf, runWithCall } from '../support/pending-call.js';
import { begun, config, toolDefinition } from '../support/scripts.js';

/** What an activity without a result has used, as it reports it. */
const used = { inputTokens: 7, outputTokens: 3, cachedTokens: 0 };
const spent = { ...used, costUsd: 0.5 };
const FAILED = { type: 'failed', reason: 'error' };

/** An activity that was canceled with these details. */
const cancelledWith = (task: Task, detail: unknown): Fact => ({
  type: 'cancelled',
  task,
  details: [detail],
  at: 0,
});

const tokensOf = (state: RunState): number => state.total.usage.inputTokens;

describe('the tokens of a model call without a reply', () => {
  const calling = (): RunState => after(begun(config()), scheduled(model()));

  test.each<[string, readonly Fact[]]>([
    ['failed', [failed(model(), 'x', { ...FAILED, used })]],
    ['is blocked', [blocked(model(), 'provider', { used })]],
    ['was canceled', [cancelledWith(model(), { used })]],
    ['failed after a cancel', [update('cancelTurn'), failed(model(), 'x', { ...FAILED, used })]],
    ['was canceled with its turn', [update('cancelTurn'), cancelledWith(model(), { used })]],
    ['has spent its share', [failed(model(), 'x', { ...FAILED, limit: 'tokens', used })]],
  ])('count if it %s', (_, facts) => {
    expect(tokensOf(after(calling(), ...facts))).toBe(7);
  });

  test('do not count if they have another form, as in a failure by hand', () => {
    for (const detail of [null, 7, { used: 7 }, { used: { inputTokens: -1 } }]) {
      expect(tokensOf(after(calling(), cancelledWith(model(), detail)))).toBe(0);
    }
  });

  test('come with the paid replies, which the next attempt takes up', () => {
    const state = after(calling(), cancelledWith(model(), { used, paid: ['so far'] }));
    expect(workOf(state, 'model')).toEqual({ paid: ['so far'], phase: 'waiting' });
    const without = after(calling(), cancelledWith(model(), { used }));
    expect(workOf(without, 'model')).toEqual({ phase: 'waiting' });
  });
});

describe('a model call that a limit has stopped', () => {
  const failure = (task: Task): Fact => failed(task, 'x', { ...FAILED, limit: 'tokens' });

  test('closes the turn, and is no failure', () => {
    const state = after(begun(config()), scheduled(model()), failure(model()));
    expect([state.turn.limit, state.work, getOutcome(state)]).toEqual(['tokens', [], null]);
    expect(nextAction(state)).toEqual({ type: 'begin-closing', reason: 'tokens' });
  });

  test('is the end of the turn if it was the closing call', () => {
    const start = begun(config());
    const phase = { type: 'closing', reason: 'steps' } as const;
    const closing = { ...start, turn: { ...start.turn, phase } };
    const task = model({ closing: true });
    const state = after(closing, scheduled(task), failure(task));
    expect(getOutcome(state)).toMatchObject({ status: 'stopped', reason: 'steps' });
  });
});

test.each([
  ['message', ['message']],
  [undefined, [undefined]],
])('what the provider has refused of a failed call leaves the prompt: %s', (refused, marks) => {
  const fact = failed(model(), 'x', { ...FAILED, ...(refused !== undefined && { refused }) });
  const state = after(begun(config()), scheduled(model()), fact);
  expect(state.transcript.messages.map((message) => message.refused)).toEqual(marks);
});

describe('the model calls of a node', () => {
  const NODE = 'node_ask_1_0';

  /** A run whose graph is at a function, which is executed. */
  function executing(exits: Readonly<Record<string, string>>): RunState {
    const confirm = node('next', { kind: 'confirm', show: '?' }, { yes: 'end', no: 'end' });
    const nodes = [node('ask', RUN, exits), confirm];
    const graph = { start: 'ask', nodes, fields: [], initial: {}, perTurn: [] };
    const message = { id: 'm', text: 'go', turn: 1 };
    const state = [
      { type: 'message-received', message } as const,
      { type: 'turn-begun', at: 0 } as const,
      { type: 'node-begun', at: 0 } as const,
    ].reduce(reduce, initialState(config({ graph, tools: [] })));
    return after(state, scheduled(toolTask(state, 0)));
  }

  const EXITS = { done: 'next', failed: 'next' };
  const TASK = toolTask(executing(EXITS), 0);
  const usage = { ...spent };

  test.each<[string, readonly Fact[]]>([
    ['succeeded', [completed(TASK, { ok: true, text: '{}', output: {}, spent })]],
    ['returned an error', [completed(TASK, { ok: false, text: 'no', spent })]],
    ['did not start', [completed(TASK, { ok: 'not_started', message: 'no', spent })]],
    ['failed', [failed(TASK, 'x', { ...FAILED, spent })]],
    ['is blocked', [blocked(TASK, 'provider', { spent })]],
    ['was canceled', [cancelledWith(TASK, { spent })]],
    ['was canceled with its turn', [update('cancelTurn'), cancelledWith(TASK, { spent })]],
  ])('cost the same if its activity %s', (_, facts) => {
    expect(after(executing(EXITS), ...facts).total.usage).toEqual(usage);
  });

  test.each<[string, Fact]>([
    ['returned', completed(TASK, { ok: true, text: '{}', output: {}, spent })],
    ['failed', failed(TASK, 'x', { ...FAILED, spent })],
    ['was canceled', cancelledWith(TASK, { spent })],
  ])('cost the same if it %s late, and its leftover work ends', (_, fact) => {
    const over = after(executing(EXITS), completed(TASK, { ok: true, text: '{}', output: {} }));
    const late = after(over, scheduled(TASK), fact);
    expect([late.total.usage, late.work]).toEqual([usage, []]);
  });

  test('are not repeated by the next attempt after a cancel', () => {
    const state = after(executing(EXITS), cancelledWith(TASK, { spent, paid: ['a'] }));
    expect(workOf(state, NODE)).toEqual({ paid: ['a'], phase: 'waiting' });
  });

  test('block the node like a model call, which they do not for a tool', () => {
    const waits = after(executing(EXITS), blocked(TASK, 'budget'));
    expect(workOf(waits, NODE)).toMatchObject({ block: { reason: 'budget' } });
    const call = runWithCall('look');
    const task = toolTask(call, 0);
    const state = after(call, scheduled(task), blocked(task, 'budget'));
    expect([state.work, results(state)[0]]).toEqual([[], expect.stringContaining('tool_error')]);
  });

  test.each([
    ['ends the turn at the limit', { done: 'next' }, 'tokens', 'ask'],
    ['takes the exit `failed`', EXITS, null, 'next'],
  ])('that a limit has stopped: the node %s', (_, exits, limit, place) => {
    const result = { ok: false, text: 'no', limit: 'tokens' };
    const state = after(executing(exits), completed(TASK, result));
    expect([state.turn.limit, state.graph?.at?.node]).toEqual([limit, place]);
  });
});

describe('a search for the worker of a blocked call', () => {
  const tools = [toolDefinition('pay', 'once')];

  /** A run that looks for a worker, which may also apply the rules. */
  function searching(rest: object = {}): readonly [RunState, Task] {
    const state = runWithCall('pay', {}, begun(config({ tools })));
    const find = toolTask(state, 0, { blocked: 'tool_missing', find: true, ...rest });
    const missing = after(state, scheduled(toolTask(state, 0)));
    return [after(missing, blocked(toolTask(state, 0), 'tool_missing'), scheduled(find)), find];
  }

  test('leaves the call blocked until its next attempt, unless the rules were applied', () => {
    const [state, find] = searching();
    const found = completed(find, { ok: true, text: '' });
    expect(workOf(after(state, found), ID)).toMatchObject({
      found: true,
      phase: 'waiting',
      block: { reason: 'tool_missing' },
    });
    const [judging, judge] = searching({ judge: true });
    expect(workOf(after(judging, completed(judge, { ok: true, text: '' })), ID)).toEqual({
      found: true,
      probeMs: 1_000,
      phase: 'waiting',
    });
  });

  test('ends the call if the rules deny it, or makes it wait for a person', () => {
    const [state, find] = searching({ judge: true });
    const verdict = { then: 'ask', why: 'a rule' };
    const parsed = { arguments: '{"n":1}', digest: 'p' };
    const asks = after(state, completed(find, { ok: 'undecided', verdict, parsed }));
    expect(asks.work).toEqual([]);
    expect(requestOf(afterNextAction(asks))).toMatchObject({ why: 'a rule', parsed: '{"n":1}' });
    const denied = { ok: false, text: 'denied by a rule' };
    expect(results(after(state, completed(find, denied)))).toEqual(['denied by a rule']);
  });

  test('that fails has executed nothing, so nobody needs to find out', () => {
    const [state, find] = searching();
    const over = after(state, failed(find, 'no input'));
    expect([over.work, results(over)[0]]).toEqual([
      [],
      expect.stringContaining('not executed: no input'),
    ]);
    expect(over.turn.spent.toolCalls).toBe(0);
  });

  test('that is canceled with its turn has executed nothing', () => {
    const [state, find] = searching();
    expect(after(state, update('cancelTurn'), canceled(find)).work).toEqual([]);
  });
});
