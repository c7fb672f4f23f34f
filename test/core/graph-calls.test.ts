import { describe, expect, test } from 'vitest';
import type { AgentDefinition } from '../../src/core/definition/definition.js';
import type { GraphNode } from '../../src/core/definition/node-kinds.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { planValue } from '../../src/core/plan/plan.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { Verdict } from '../../src/core/definition/rules.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { getOpenBatch } from '../../src/core/state/turn.js';
import { after, completed, scheduled, toolTask } from '../support/facts.js';
import { node, RUN } from '../support/graph-agent.js';
import { callReply, config, toolDefinition } from '../support/scripts.js';

const tools = [
  toolDefinition('put', 'keyed', { value: true }),
  toolDefinition('look', 'read', { value: true }),
];

/** A run that has entered this node, with a question after it. */
function at(first: GraphNode, options: Partial<AgentDefinition> = {}, rest: object = {}): RunState {
  const next = node('next', { kind: 'confirm', show: '?' }, { yes: 'end', no: 'end' });
  const initial = { plan: planValue({ actions: [], done: [], asks: false }) };
  const nodes = [first, next];
  const graph = { start: first.name, nodes, fields: ['plan', 'n'], initial, perTurn: [] };
  const message = { id: 'm', text: 'go', turn: 1 };
  return [
    { type: 'message-received', message } as const,
    { type: 'turn-begun', at: 0 } as const,
    { type: 'node-begun', at: 0 } as const,
  ].reduce(reduce, { ...initialState(config({ graph, tools, ...options })), ...rest });
}

const EXITS = { done: 'next', failed: 'next' };
const put = node('put', { kind: 'tool', tool: 'put', arguments: { n: 1 } }, EXITS);

/** Executes the only call of the open batch. */
function executed(state: RunState, result: object): RunState {
  const task = toolTask(state, 0);
  return after(state, scheduled(task), completed(task, result, 3));
}

describe('a call of a node with a verdict of its worker', () => {
  const withVerdict = (verdict: Verdict, rest: object = {}): RunState =>
    executed(at(put, {}, rest), { ok: 'undecided', verdict });

  test('waits for approval before it is executed', () => {
    const state = withVerdict({ then: 'ask', why: 'a rule' });
    expect(state.work).toEqual([]);
    expect(nextAction(state)).toMatchObject({
      type: 'raise-requests',
      requests: [{ call: 'node_put_1_0', request: { kind: 'approval', why: 'a rule' } }],
    });
  });

  test.each<[string, Verdict, object]>([
    ['a rule denies it', { then: 'deny', why: 'a rule' }, {}],
    ['the run is unattended', { then: 'ask', why: 'a rule' }, { unattended: 'deny' }],
  ])('is not executed if %s, and its node fails', (_, verdict, rest) => {
    const state = withVerdict(verdict, rest);
    expect(state.graph?.at?.node).toBe('next');
    expect([state.work, state.turn.denials, state.turn.spent.toolCalls]).toEqual([[], 1, 0]);
  });
});

describe('the limit of tool calls', () => {
  test('counts the tools that nodes call, but not the functions of nodes', () => {
    const called = executed(at(put), { ok: true, text: 'put', output: 1 });
    expect([called.graph?.at?.node, called.turn.spent.toolCalls]).toEqual(['next', 1]);
    const run = executed(at(node('run', RUN, EXITS)), { ok: true, text: '{}', output: {} });
    expect([run.graph?.at?.node, run.turn.spent.toolCalls]).toEqual(['next', 0]);
  });

  test('counts what a planner reads', () => {
    const planner = node(
      'plan',
      { kind: 'plan', planning: 'catalog', save: 'plan', maxActions: 9, attempts: 5 },
      { planned: 'next', answered: 'end' },
    );
    const state = at(planner, { toolExposure: 'catalog', limits: { toolCalls: 1 } });
    const reply = callReply(['look', { n: 1 }], ['look', { n: 2 }]);
    const read = reduce(state, { type: 'model-replied', reply, at: 1 });
    expect(getOpenBatch(read)?.results).toMatchObject([null, { executed: false }]);
    expect(getOpenBatch(read)?.results[1]?.text).toContain('the tool-call limit has been reached');
  });
});
