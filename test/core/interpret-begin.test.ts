import { describe, expect, test } from 'vitest';
import type { GraphNode } from '../../src/core/definition/node-kinds.js';
import { continuedRun } from '../../src/core/graph/run-node.js';
import { nextAction } from '../../src/core/run/next-action.js';
import type { Outcome, OutcomeEnd } from '../../src/core/transcript/outcome.js';
import { reduce } from '../../src/core/run/reduce.js';
import { finalOutcome } from '../../src/core/run/status.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import {
  after,
  blocked,
  completed,
  model,
  replied,
  scheduled,
  toolTask,
  workOf,
} from '../support/facts.js';
import { callReply, begun, config, textReply } from '../support/scripts.js';

const start = begun(config());

describe('work that begins', () => {
  const state = replied(start, callReply(['look']));
  const task = toolTask(state, 0);
  const missing = after(state, scheduled(task), blocked(task, 'tool_missing', {}, 5));

  test('remains blocked while it is only probed, but not when it is attempted', () => {
    const probe = toolTask(state, 0, { blocked: 'tool_missing' });
    expect(workOf(after(missing, scheduled(probe)), 'call_1_1_0')).toMatchObject({
      as: 'probe',
      block: { reason: 'tool_missing', until: 1_005 },
    });
    expect(workOf(after(missing, scheduled(task)), 'call_1_1_0')).toEqual({
      probeMs: 1_000,
      phase: 'in-flight',
      as: 'attempt',
    });
  });

  test('by a compaction knows which messages it summarizes, even in a new segment', () => {
    const compacting = after(start, scheduled(model({ compact: 3 })));
    expect(workOf(compacting, 'model')).toMatchObject({ cut: 3 });
    expect(nextAction(compacting)).toMatchObject({ type: 'compact', cut: 3 });
    expect(workOf(after(start, scheduled(model())), 'model')).not.toHaveProperty('cut');
  });
});

describe('archiving', () => {
  const task = { activity: 'archiveMessages', input: { archive: { from: 0, to: 2 }, chunk: null } };

  test('at the end of a run does not hide its outcome', () => {
    const over = replied(start, textReply('well'));
    const done = reduce(over, { type: 'turn-recorded', at: 1 });
    const archiving = after({ ...done, archives: true }, scheduled(task));
    expect(finalOutcome(archiving)).toMatchObject({ status: 'completed', answer: 'well' });
    const stuck = after(archiving, blocked(task, 'storage'));
    expect(finalOutcome(stuck)).toMatchObject({ status: 'completed', answer: 'well' });
  });

  test('between two turns is followed by more than an outcome', () => {
    const open = replied({ ...start, open: true, archives: true }, textReply('well'));
    const done = reduce(open, { type: 'turn-recorded', at: 1 });
    expect(finalOutcome(after(done, scheduled(task)))).toBeNull();
    expect(workOf(after(done, scheduled(task)), 'archive')).not.toHaveProperty('last');
  });
});

describe('a node that continues its conversation', () => {
  const agent = (rest: object = {}): Extract<GraphNode, { kind: 'agent' }> => ({
    name: 'ask',
    kind: 'agent',
    agent: 'clerk',
    message: 'x',
    exits: ['done', 'stopped', 'failed'].map((name) => ({ name, to: 'next' })),
    ...rest,
  });
  const CALL = 'node_ask_1_0';
  const child = { activity: 'agent', input: { call: CALL, run: 'run-7' } };

  /** A run whose graph is at its agent. */
  function at(node: Extract<GraphNode, { kind: 'agent' }>): RunState {
    const exits = [{ name: 'done', to: 'ask' }];
    const next: GraphNode = { name: 'next', kind: 'confirm', show: '?', exits };
    const nodes = [node, next];
    const graph = { start: 'ask', nodes, fields: [], initial: {}, perTurn: [] };
    const message = { id: 'm', text: 'go', turn: 1 };
    return [
      { type: 'message-received', message } as const,
      { type: 'turn-begun', at: 0 } as const,
      { type: 'node-begun', at: 0 } as const,
    ].reduce(reduce, initialState(config({ graph, tools: [] })));
  }

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
  const ended = (state: RunState, found: Outcome | null): RunState =>
    after(state, scheduled(child), {
      type: 'child-ended',
      call: CALL,
      outcome: found,
      message: 'lost',
      at: 1,
    });

  test.each<OutcomeEnd>([
    { status: 'completed', reason: 'answer' },
    { status: 'stopped', reason: 'steps' },
  ])('continues the run of its agent that ended with: %j', (end) => {
    const node = agent({ continues: true });
    expect(workOf(after(at(node), scheduled(child)), CALL)).toMatchObject({ child: 'run-7' });
    expect(continuedRun(ended(at(node), outcome(end)), node)).toBe('run-7');
  });

  test('begins anew after a run that failed or was lost', () => {
    const node = agent({ continues: true });
    expect(
      continuedRun(ended(at(node), outcome({ status: 'failed', reason: 'error' })), node),
    ).toBeUndefined();
    expect(continuedRun(ended(at(node), null), node)).toBeUndefined();
  });

  test('remembers nothing if it does not continue', () => {
    const state = after(at(agent()), scheduled(child));
    expect(workOf(state, CALL)).not.toHaveProperty('child');
    const done = ended(at(agent()), outcome({ status: 'completed', reason: 'answer' }));
    expect(done.graph).not.toHaveProperty('conversations');
  });

  test('knows its run only from the start of that run', () => {
    const node = agent({ continues: true });
    const follow = { activity: 'followRun', input: { run: `a/b/${CALL}-0123456789abcdef` } };
    const following = after(at(node), scheduled(child), scheduled(follow));
    expect(workOf(following, CALL)).toMatchObject({ as: 'follow', child: 'run-7' });
    const found = { type: 'ended', outcome: outcome({ status: 'completed', reason: 'answer' }) };
    expect(continuedRun(after(following, completed(follow, found)), node)).toBe('run-7');
  });
});
