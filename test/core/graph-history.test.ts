import { expect, test } from 'vitest';
import type { GraphDefinition } from '../../src/core/graph/definition.js';
import { reduce } from '../../src/core/reduce.js';
import { initialState } from '../../src/core/state.js';
import type { Message } from '../../src/core/transcript/messages.js';
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
