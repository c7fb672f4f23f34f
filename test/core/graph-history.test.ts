import { describe, expect, test } from 'vitest';
import type { GraphDefinition } from '../../src/core/definition/graph-definition.js';
import { stateShape } from '../../src/core/guards/state.js';
import {
  beginWithFork,
  forkableVisit,
  promptBefore,
  visitBegun,
} from '../../src/core/state/fork.js';
import type { JsonObject } from '../../src/core/text/json.js';
import { reduce } from '../../src/core/run/reduce.js';
import { applyStoredMessages } from '../../src/core/run/carry.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import type { Message } from '../../src/core/transcript/messages.js';
import { transcriptPage } from '../../src/core/run/status.js';
import { chain, FIRST_LINK, toPromptMessage } from '../../src/core/transcript/transcript.js';
import { node } from '../support/graph-agent.js';
import { config } from '../support/scripts.js';

const graph: GraphDefinition = {
  start: 'ask',
  nodes: [node('ask', { kind: 'confirm', show: 'Go on?' }, { yes: 'end', no: 'end' })],
  fields: ['history'],
  initial: {},
  perTurn: [],
  historyTo: { field: 'history', last: 5 },
};

test('T-42 the field of `historyTo` has the last five messages before the turn, without results of tools', () => {
  const place = (n: number) => ({ n, turn: 1, step: 0, at: 0 });
  const user = (n: number): Message => ({ ...place(n), role: 'user', text: `said ${n}` });
  const assistant = (n: number, text = `said ${n}`): Message => ({
    ...place(n),
    role: 'assistant',
    text,
  });
  const messages: readonly Message[] = [
    user(1),
    user(2),
    assistant(3),
    user(4),
    assistant(5, ''),
    { ...place(6), role: 'tool', text: 'rows', callId: 'call_1_1_1' },
    assistant(7),
    user(8),
  ];
  const begun = initialState(config({ graph }));
  const state = [
    { type: 'message-received', message: { id: 'm', text: 'now', turn: 1 } } as const,
    { type: 'turn-begun', at: 0 } as const,
  ].reduce(reduce, { ...begun, transcript: { ...begun.transcript, messages } });
  expect(state.graph?.values['history']).toEqual([
    { role: 'user', text: 'said 2' },
    { role: 'assistant', text: 'said 3' },
    { role: 'user', text: 'said 4' },
    { role: 'assistant', text: 'said 7' },
    { role: 'user', text: 'said 8' },
  ]);
});

describe('the answer of a turn', () => {
  const answering: GraphDefinition = {
    start: 'over',
    nodes: [node('over', { kind: 'choose', cases: [] }, { else: 'end' })],
    fields: ['history', 'answer', 'refused'],
    initial: {},
    perTurn: ['answer', 'refused'],
    historyTo: { field: 'history', last: 5 },
    answerFrom: 'answer',
    answerJoins: true,
    refusedFrom: 'refused',
  };
  /** A turn of a graph whose nodes take no time: its input is its end. */
  const turn = (state: RunState, text: string, input: JsonObject, open = false): RunState => {
    const number = state.turn.number + 1;
    const message = { id: `m${number}`, text, turn: number, input };
    return [
      { type: 'message-received', message } as const,
      { type: 'turn-begun', at: number } as const,
      ...(open ? [] : [{ type: 'turn-recorded', at: number } as const]),
    ].reduce(reduce, state);
  };
  const { answerJoins: _joins, ...older } = answering;
  const { answerFrom: _from, ...unanswered } = older;
  const begin = (definition: GraphDefinition = answering): RunState =>
    initialState(config({ graph: definition }), { open: true });
  const promptOf = ({ transcript }: RunState): readonly string[] =>
    transcript.messages.map(({ role, text }) => `${role}: ${text}`);
  /** The digest of a prompt without chunks. */
  const headOf = (messages: readonly Message[]): string =>
    messages.reduce((head, message) => chain(head, toPromptMessage(message)), FIRST_LINK);

  test('joins the conversation, for the next prompt and for `historyTo`', () => {
    const ended = turn(turn(begin(), 'hello', { answer: 'Hi!' }), 'again', { answer: { n: 1 } });
    expect(promptOf(ended)).toEqual([
      'user: hello',
      'assistant: Hi!',
      'user: again',
      'assistant: {"n":1}',
    ]);
    expect(ended.graph?.values['history']).toEqual([
      { role: 'user', text: 'hello' },
      { role: 'assistant', text: 'Hi!' },
    ]);
    expect(ended.transcript.messages[1]).toMatchObject({ origin: 'graph', n: 1, turn: 1 });
    expect(ended.transcript.head).toBe(headOf(ended.transcript.messages));
    expect(stateShape(ended, 'state')).toBeNull();
  });

  test.each([
    ['without `answerFrom`', begin(unanswered), 'hello'],
    ['of a definition from before', begin(older), 'hello'],
    ['to no message', begin(), ''],
  ])('stays out of it %s', (_, state, text) => {
    const ended = turn(state, text, { answer: 'Hi!' });
    expect(promptOf(ended)).toEqual(text === '' ? [] : ['user: hello']);
  });

  test.each([
    ['as it is', 'Hi!', 'Hi!'],
    ['as JSON', '{ "n": 1 }', { n: 1 }],
    ['as the answer of a plan', '{"actions":[],"answer":"Hi!"}', 'Hi!'],
  ])('is not repeated if the model wrote it %s', (_, text, answer) => {
    const deciding = begin({
      ...answering,
      start: 'ask',
      nodes: [node('ask', { kind: 'decide' }, { text: 'end' })],
    });
    const asked = turn(deciding, 'hello', { answer }, true);
    const reply = {
      text,
      finish: 'stop',
      usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0 },
    } as const;
    const ended = reduce(asked, { type: 'model-replied', reply, at: 9 });
    expect(ended.turn.phase.type).toBe('over');
    expect(promptOf(ended)).toEqual(['user: hello', `assistant: ${text}`]);
    const other = reduce(asked, { type: 'model-replied', reply: { ...reply, text: 'x' }, at: 9 });
    expect(promptOf(other).slice(0, 2)).toEqual(['user: hello', 'assistant: x']);
    expect(promptOf(other)).toHaveLength(3);
  });

  test('and the messages that a graph refused stay in the transcript, and out of every prompt', () => {
    const first = turn(begin(), 'hello', { answer: 'Hi!' });
    const refused = turn(first, 'a bomb', { answer: 'No.', refused: true });
    expect(promptOf(refused)).toEqual(promptOf(first));
    expect(refused.transcript.head).toBe(first.transcript.head);
    expect(refused.transcript.tokens).toBe(first.transcript.tokens);
    expect(refused.compaction.promptTokens).toBe(first.compaction.promptTokens);
    const page = transcriptPage(refused.transcript).messages;
    expect(page.map(({ n, text }) => [n, text])).toEqual([
      [0, 'hello'],
      [1, 'Hi!'],
      [2, 'a bomb'],
      [3, 'No.'],
    ]);
    expect(page[3]).toMatchObject({ refuses: { from: 2, to: 2 } });
    const next = turn(refused, 'well', { answer: 'Well.' });
    expect(next.graph?.values['history']).toHaveLength(2);
    expect(
      promptBefore([...page, ...next.transcript.messages.slice(2)], { at: 99, own: 0 }),
    ).toEqual({
      at: 99,
      needs: 0,
      messages: next.transcript.messages,
    });
    // A fork before the answer knows of the refusal, too.
    expect(promptBefore(page, { at: 3, own: 0 }).messages.map(({ n }) => n)).toEqual([0, 1]);
    expect(stateShape(next, 'state')).toBeNull();
  });

  test('is refused behind a chunk, whose digest the run keeps', () => {
    const first = turn(turn(begin(), 'hello', { answer: 'Hi!' }), 'more', { answer: 'More.' });
    const blob = { sha256: 'a'.repeat(64), bytes: 1 };
    const stored = { archived: 0, chunk: { blob, count: 3 } };
    const moved = applyStoredMessages(first, stored);
    const refused = turn(moved, 'a bomb', { answer: 'No.', refused: true });
    expect(refused.transcript.head).toBe(first.transcript.head);
    expect(promptOf(refused)).toEqual(['assistant: More.']);
    const again = applyStoredMessages(refused, { archived: 0, chunk: { blob, count: 1 } });
    expect(again.transcript.chunksHead).toBe(first.transcript.head);
    expect(stateShape(again, 'state')).toBeNull();
    expect(moved.transcript.latest?.map(({ text }) => text)).toEqual(['hello', 'Hi!', 'more']);
    expect(refused.graph?.values['history']).toHaveLength(4);
    // A run that an older version has continued does not know the digest: the answer joins.
    const { chunksHead: _head, ...transcript } = moved.transcript;
    const kept = turn({ ...moved, transcript }, 'a bomb', { answer: 'No.', refused: true });
    expect(promptOf(kept)).toEqual(['assistant: More.', 'user: a bomb', 'assistant: No.']);
  });
});

describe('a fork at a node', () => {
  const run = { kind: 'run', timeoutMs: 1_000, attempts: 1 } as const;
  const looped: GraphDefinition = {
    start: 'write',
    nodes: [
      node('write', run, { done: 'pick' }),
      node('pick', { kind: 'decide' }, { pay: 'pay', text: 'end' }),
      node('pay', { kind: 'tool', tool: 'pay' }, { done: 'write' }),
      node('never', run, { done: 'end' }),
    ],
    fields: ['draft', 'topic'],
    initial: { draft: '' },
    perTurn: ['draft'],
    messageTo: 'topic',
  };
  const visits = (name: string, total: number) => ({
    node: name,
    inTurn: total,
    total,
    ms: 0,
    taken: [],
  });
  const values = { draft: 'old', topic: 'tea', gone: 1 };
  const at = { node: 'write', visit: 2, since: 0 };
  const visited = [visits('write', 2), visits('pick', 1), visits('pay', 1)];
  const state = { ...initialState(config({ graph: looped })), graph: { values, at, visited } };
  const meantBy = (_: string, [first]: readonly string[]) => first;

  test.each([
    ['the newest visit', { node: 'write' }, { visit: 2 }],
    ['a visit by number', { node: 'write', visit: 1 }, { visit: 1 }],
    [
      'an unknown node',
      { node: 'wirte' },
      {
        problem: `fork.at: expected a node of the run's graph (write, pick, pay, never), got "wirte" (nearest: write)`,
      },
    ],
    [
      'a node never visited',
      { node: 'never' },
      {
        problem:
          'fork.at: expected a node that the run has visited (write (2 times), pick, pay), got "never"',
      },
    ],
    [
      'a visit that was not',
      { node: 'write', visit: 3 },
      { problem: 'fork.at.visit: expected at most 2, the visits of node "write", got 3' },
    ],
    [
      'a call that the model has chosen',
      { node: 'pay' },
      {
        problem:
          'fork.at: node "pay" executes the call that the node before it decided on; fork from that node',
      },
    ],
  ])('finds, or says why not: %s', (_, place, found) => {
    expect(forkableVisit(state, place, meantBy)).toEqual(found);
  });

  test('a run without a graph has no node to begin at', () => {
    expect(forkableVisit(initialState(config({})), { node: 'write' }, meantBy)).toEqual({
      problem: 'fork.at: the run has no graph; give the number of a message',
    });
  });

  test('a visit has begun in the first state that counts it', () => {
    expect(visitBegun(state, 'write', 3)).toBeNull();
    expect(visitBegun(state, 'write', 2)).toEqual({
      graph: { begins: 'write', visit: 2, values },
      at: 0,
      artifacts: [],
    });
  });

  const begun = (definition: GraphDefinition | undefined, text = '') => {
    const fresh = initialState(config(definition === undefined ? {} : { graph: definition }));
    const forked = beginWithFork(fresh, {
      from: { run: 'r', runId: 'i', at: 0 },
      chunk: { blob: { sha256: '0', bytes: 0 }, count: 0 },
      head: '',
      tokens: 0,
      pinned: [],
      graph: { begins: 'write', visit: 2, values },
    });
    return [
      { type: 'message-received', message: { id: 'm', text, turn: 1, input: {} } } as const,
      { type: 'turn-begun', at: 0 } as const,
    ].reduce(reduce, forked);
  };

  test('keeps the fields of the turn, and counts its own visits', () => {
    expect(begun(looped).graph).toMatchObject({
      values: { draft: 'old', topic: 'tea' },
      at: { node: 'write', visit: 1 },
      visited: [{ node: 'write', total: 1 }],
    });
    expect(begun(looped).graph).not.toHaveProperty('values.gone');
    expect(begun(looped).graph).not.toHaveProperty('begins');
    expect(begun(looped, 'milk').graph?.values).toEqual({ draft: 'old', topic: 'milk' });
  });

  test.each([
    [
      'lacks the node',
      { ...looped, start: 'pick', nodes: looped.nodes.slice(1) },
      'whose nodes are now pick, pay, never',
    ],
    ['is no longer a graph', undefined, 'which is not a graph'],
  ])('fails if the current definition %s', (_, definition, why) => {
    const { phase } = begun(definition).turn;
    expect(phase).toMatchObject({ type: 'over', outcome: { status: 'failed', reason: 'input' } });
    expect(JSON.stringify(phase)).toContain(why);
  });
});
