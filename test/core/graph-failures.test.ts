import { describe, expect, test } from 'vitest';
import type { GraphDefinition } from '../../src/core/definition/graph-definition.js';
import type { GraphNode } from '../../src/core/definition/node-kinds.js';
import { continuedRun, withConversation } from '../../src/core/graph/run-node.js';
import type { JsonObject } from '../../src/core/text/json.js';
import type { RecordedReply } from '../../src/core/transcript/outcome.js';
import { reduce } from '../../src/core/run/reduce.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { getOpenBatch, getOutcome } from '../../src/core/state/turn.js';
import { node } from '../support/graph-agent.js';
import { after, completed, scheduled, toolTask } from '../support/facts.js';
import { config, textReply, toolDefinition } from '../support/scripts.js';

const PUT = toolDefinition('put', 'keyed', { value: true });

function definition(nodes: readonly GraphNode[], rest: Partial<GraphDefinition> = {}) {
  const fields = ['kind', 'error', 'n'];
  return { start: nodes[0]?.name ?? '', nodes, fields, initial: {}, perTurn: [], ...rest };
}

function at(graph: GraphDefinition, values: JsonObject = {}): RunState {
  const state = initialState(config({ graph, tools: [PUT] }));
  const message = { id: 'm', text: 'go', turn: 1, input: values };
  return [
    { type: 'message-received', message } as const,
    { type: 'turn-begun', at: 0 } as const,
  ].reduce(reduce, state);
}

describe('a model call that fails at a node', () => {
  const output = { name: 'kind', schema: {}, attempts: 2 };
  const decide = (exits: Readonly<Record<string, string>>): GraphNode =>
    node('sort', { kind: 'decide', save: 'kind', output }, exits);
  const fix = node('fix', { kind: 'confirm', show: 'What now?' }, { yes: 'end', no: 'end' });
  const endings: readonly RecordedReply['finish'][] = ['length', 'refused', 'filtered'];

  test.each(endings)('leaves by `failed` if its reply is %s', (finish) => {
    const graph = definition([decide({ done: 'end', failed: 'fix' }), fix], { errorTo: 'error' });
    const state = reduce(at(graph), {
      type: 'model-replied',
      reply: textReply('x', finish),
      at: 1,
    });
    expect(state.graph?.at?.node).toBe('fix');
    expect(state.graph?.values['error']).toMatchObject({ node: 'sort' });
  });

  test('leaves by `failed` if the model cannot be called', () => {
    const graph = definition([decide({ done: 'end', failed: 'fix' }), fix], { errorTo: 'error' });
    const failure = { type: 'model-failed', reason: 'error', message: 'no model', at: 1 } as const;
    const state = reduce(at(graph), failure);
    expect(state.graph?.values['error']).toEqual({
      node: 'sort',
      type: 'error',
      message: 'no model',
    });
  });

  test('ends the turn without that exit, and names the node', () => {
    const graph = definition([decide({ done: 'end' })]);
    const failure = { type: 'model-failed', reason: 'error', message: 'no model', at: 1 } as const;
    expect(getOutcome(reduce(at(graph), failure))).toMatchObject({
      status: 'failed',
      error: 'node "sort": no model',
    });
  });
});

describe('a call of a node that was denied', () => {
  const again = node(
    'put',
    { kind: 'tool', tool: 'put', arguments: { n: 1 }, maxVisits: 6 },
    { done: 'end', failed: 'put', capped: 'end' },
  );

  test('is not requested again in the turn, and ends the turn at the third attempt', () => {
    const verdict = { then: 'ask', why: 'a rule' } as const;
    const withVerdict = (state: RunState): RunState => {
      const task = toolTask(state, 0);
      const result = completed(task, { ok: 'undecided', verdict }, 2);
      return after(state, scheduled(task), result);
    };
    const begin = (state: RunState): RunState => reduce(state, { type: 'node-begun', at: 1 });
    const first = withVerdict(begin(at(definition([again]))));
    const id = getOpenBatch(first)?.calls[0]?.id ?? '';
    expect(getOpenBatch(first)?.calls[0]).toMatchObject({ verdict });
    const result = { id, ok: false, text: 'no', denied: true, executed: false } as const;
    const denied = reduce(first, { type: 'call-finished', result, at: 3 });
    expect(denied.turn).toMatchObject({ denials: 1, limit: null });
    // The same call gets its result when the node begins.
    const second = begin(denied);
    expect(second.turn).toMatchObject({ denials: 2, limit: null });
    expect(begin(second).turn).toMatchObject({ denials: 3, limit: 'denied' });
  });
});

describe('a newer graph', () => {
  test('begins with its own defaults, and without fields that it does not have', () => {
    const wait = node('ask', { kind: 'confirm', show: '?' }, { yes: 'end', no: 'end' });
    const old = at(definition([wait]), { kind: 'a', n: 1 });
    const graph = { ...definition([wait]), fields: ['n', 'count'], initial: { count: 0 } };
    const message = { id: 'm2', text: 'again', turn: 2 };
    const refreshed = [
      { type: 'agent-refreshed', config: config({ graph, tools: [PUT] }) } as const,
      { type: 'message-received', message } as const,
      { type: 'turn-begun', at: 5 } as const,
    ].reduce(reduce, old);
    expect(refreshed.graph?.values).toEqual({ n: 1, count: 0 });
  });
});

describe('a conversation that continues', () => {
  const agentNode = (agent: string): Extract<GraphNode, { kind: 'agent' }> => ({
    name: 'ask',
    kind: 'agent',
    agent,
    message: 'x',
    continues: true,
    exits: [{ name: 'done', to: 'end' }],
  });

  test('is always that of the same agent', () => {
    const state = withConversation(at(definition([agentNode('clerk')])), 'run-1');
    expect(continuedRun(state, agentNode('clerk'))).toBe('run-1');
    expect(continuedRun(state, agentNode('boss'))).toBeUndefined();
  });
});
