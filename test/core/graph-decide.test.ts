import { expect, test } from 'vitest';
import type { GraphNode } from '../../src/core/graph/definition.js';
import { reduce } from '../../src/core/reduce.js';
import { initialState, type RunState } from '../../src/core/state.js';
import type { RecordedReply } from '../../src/core/reply.js';
import { getOutcome } from '../../src/core/turn.js';
import { node } from '../support/graph-agent.js';
import { callReply, config, textReply } from '../support/scripts.js';
import { runTurn } from '../support/turn.js';

/** Runs a graph whose model replies by a script; returns its last state and the executed tools. */
async function run(
  nodes: readonly GraphNode[],
  script: readonly RecordedReply[],
): Promise<{ state: RunState; executed: readonly string[] }> {
  const rest = [...script];
  const executed: string[] = [];
  const [{ name: start } = { name: '' }] = nodes;
  const graph = { start, nodes, fields: ['answer'], initial: {}, perTurn: [] };
  const message = { id: '', text: 'go', turn: 1 };
  const from = initialState(config({ graph, toolCalls: 'first' }));
  const state = await runTurn(reduce(from, { type: 'message-received', message }), {
    callModel: async () => {
      const reply = rest.shift();
      if (reply === undefined) throw new Error('the script is used up');
      return { type: 'replied', reply };
    },
    runCalls: async (_, calls, finished) => {
      for (const { id, name } of calls) {
        executed.push(name);
        finished(id, { ok: true, text: `${name} done` });
      }
      return null;
    },
  });
  return { state, executed };
}

const toolTexts = (state: RunState): readonly string[] =>
  state.transcript.messages.flatMap(({ role, text }) => (role === 'tool' ? [text] : []));

test('a decision is executed by the node of its tool', async () => {
  const { state, executed } = await run(
    [
      node('decide', { kind: 'decide', save: 'answer' }, { look: 'look', text: 'end' }),
      node('look', { kind: 'tool', tool: 'look' }, { done: 'decide', failed: 'decide' }),
    ],
    [callReply(['look'], ['put']), textReply('found')],
  );
  expect(executed).toEqual(['look']);
  expect(toolTexts(state)[1]).toContain('only the first call of a message is executed');
  expect(getOutcome(state)).toMatchObject({ output: { answer: 'found' } });
});

test('a tool without an exit is not executed, even if another node has it', async () => {
  const { state, executed } = await run(
    [
      node('decide', { kind: 'decide' }, { look: 'put', text: 'end' }),
      node('put', { kind: 'tool', tool: 'put', arguments: {} }, { done: 'end', failed: 'end' }),
    ],
    [callReply(['put']), textReply('never mind')],
  );
  expect(executed).toEqual([]);
  expect(toolTexts(state)).toEqual([
    expect.stringContaining('the graph has no exit for this tool'),
  ]);
});

test('a decision that leads to another node is not executed, and its call has a result', async () => {
  const { state, executed } = await run(
    [
      node('decide', { kind: 'decide' }, { look: 'put', text: 'end' }),
      node('put', { kind: 'tool', tool: 'put', arguments: {}, save: 'answer' }, { done: 'end' }),
    ],
    [callReply(['look'])],
  );
  expect(executed).toEqual(['put']);
  expect(toolTexts(state)).toEqual([expect.stringContaining('the graph continued without it')]);
  expect(getOutcome(state)).toMatchObject({ status: 'completed', output: { answer: 'put done' } });
});

test('an unknown tool lets the model decide again', async () => {
  const { state } = await run(
    [node('decide', { kind: 'decide' }, { look: 'end', text: 'end' })],
    [callReply(['nothing']), textReply('well')],
  );
  expect(toolTexts(state)).toEqual([expect.stringContaining('unknown_tool')]);
  expect(getOutcome(state)).toMatchObject({ status: 'completed' });
});
