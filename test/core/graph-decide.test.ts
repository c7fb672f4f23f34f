import { describe, expect, test } from 'vitest';
import type { GraphDefinition } from '../../src/core/definition/graph-definition.js';
import type { GraphNode } from '../../src/core/definition/node-kinds.js';
import type { Json } from '../../src/core/text/json.js';
import { reduce } from '../../src/core/run/reduce.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import type { RecordedReply } from '../../src/core/transcript/outcome.js';
import { saidTexts } from '../../src/core/transcript/messages.js';
import { getOutcome } from '../../src/core/state/turn.js';
import { node } from '../support/graph-agent.js';
import { callReply, config, textReply } from '../support/scripts.js';
import { runTurn } from '../support/turn.js';

interface Ran {
  readonly state: RunState;
  readonly executed: readonly string[];
  /** What each model call saw. */
  readonly prompts: readonly (readonly string[])[];
}

/** Runs a graph whose model replies by a script, and whose called agents answer. */
async function run(
  nodes: readonly GraphNode[],
  script: readonly RecordedReply[],
  rest: Partial<GraphDefinition> = {},
): Promise<Ran> {
  const replies = [...script];
  const prompts: string[][] = [];
  const executed: string[] = [];
  const [{ name: start } = { name: '' }] = nodes;
  const graph = { start, nodes, fields: ['answer'], initial: {}, perTurn: [], ...rest };
  const message = { id: '', text: 'go', turn: 1 };
  const from = initialState(config({ graph, toolCalls: 'first' }));
  const state = await runTurn(reduce(from, { type: 'message-received', message }), {
    callModel: async ({ transcript }) => {
      prompts.push(transcript.messages.map(({ role, text }) => `${role}: ${text}`));
      const reply = replies.shift();
      if (reply === undefined) throw new Error('the script is used up');
      return { type: 'replied', reply };
    },
    runCalls: async (_, calls, finished) => {
      for (const { id, name } of calls) {
        executed.push(name);
        const output = { status: 'completed', answer: `draft ${executed.length}` };
        finished(id, {
          ok: true,
          text: `${name} done`,
          ...(name.startsWith('node:') && { output }),
        });
      }
      return null;
    },
  });
  return { state, executed, prompts };
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

describe('what a decision sees', () => {
  const WRITE = { kind: 'agent', agent: 'writer', message: 'Write.', save: 'answer' } as const;
  const written = { done: 'judge', stopped: 'end', failed: 'end' };
  const write = node('write', WRITE, written);
  const judge = (message?: Json): GraphNode =>
    node(
      'judge',
      { kind: 'decide', maxVisits: 2, ...(message !== undefined && { message }) },
      { look: 'write', text: 'end', capped: 'end' },
    );
  const script = [callReply(['look']), textReply('fine')];

  test('is the conversation with the answers of nodes', async () => {
    const { prompts, state } = await run([write, judge()], script, { nodesJoin: true });
    expect(prompts).toEqual([
      ['user: go', 'assistant: draft 1'],
      [
        'user: go',
        'assistant: draft 1',
        'assistant: ',
        expect.stringMatching(/^tool: /),
        'assistant: draft 2',
      ],
    ]);
    expect(state.transcript.messages[1]).toMatchObject({ origin: 'graph', node: 'write' });
  });

  test('has the message of its node, at each visit, as the last message', async () => {
    const { prompts, state } = await run(
      [write, judge({ $text: ['Judge: ', { $path: 'answer' }] })],
      script,
    );
    expect(prompts.map((prompt) => prompt.at(-1))).toEqual([
      'user: Judge: draft 1',
      'user: Judge: draft 2',
    ]);
    expect(state.transcript.messages[1]).toMatchObject({ origin: 'graph', node: 'judge' });
  });

  test('has the answers of an `each` in the order of its items', async () => {
    const body = { kind: 'agent', agent: 'writer', message: { $item: '' } } as const;
    const each = { kind: 'each', over: ['a', 'b'], atOnce: 2, body, save: 'answer' } as const;
    const { prompts } = await run(
      [node('write', each, { done: 'judge' }), judge()],
      script.slice(1),
      {
        nodesJoin: true,
      },
    );
    expect(prompts).toEqual([['user: go', 'assistant: 1. draft 1\n\n2. draft 2']]);
  });

  test('is what it was, in a graph that an older version has pinned', async () => {
    const { prompts } = await run([write, judge()], script.slice(1));
    expect(prompts).toEqual([['user: go']]);
  });

  test('is not the answer of a turn twice', async () => {
    const { state } = await run(
      [write, judge()],
      [callReply(['nothing']), callReply(['look']), callReply(['look'])],
      {
        nodesJoin: true,
        answerFrom: 'answer',
        answerJoins: true,
      },
    );
    const texts = state.transcript.messages.map(({ text }) => text);
    expect(texts.filter((text) => text === getOutcome(state)?.answer)).toHaveLength(1);
  });

  test('is in `historyTo` of a later turn, without the messages of nodes', () => {
    const place = { n: 0, turn: 1, step: 0, at: 0 };
    expect(
      saidTexts([
        { ...place, role: 'user', text: 'Judge.', origin: 'graph', node: 'judge' },
        { ...place, role: 'assistant', text: 'draft', origin: 'graph', node: 'write' },
      ]),
    ).toEqual([{ role: 'assistant', text: 'draft' }]);
  });
});
