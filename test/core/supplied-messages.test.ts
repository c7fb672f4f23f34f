import { describe, expect, test } from 'vitest';
import { acceptMessage, askProblem } from '../../src/core/run/ask.js';
import { unloadedConfig } from '../../src/core/rules/limits.js';
import { stateShape } from '../../src/core/guards/state.js';
import type { Ask } from '../../src/core/input/inbox.js';
import { parseRunInput } from '../../src/core/input/input.js';
import { composeAnswer } from '../../src/core/rules/documents.js';
import { reduce } from '../../src/core/run/reduce.js';
import { firstState } from '../../src/core/segments/start.js';
import { initialState } from '../../src/core/state/state.js';
import { inTurn, getOutcome } from '../../src/core/state/turn.js';
import { config } from '../support/scripts.js';
import { mail } from './graph/fixture.js';
import { refusalText } from '../support/refusal-text.js';

const messages = [
  { role: 'user', text: 'Is 7 prime?' },
  { role: 'assistant', text: 'Yes.' },
  { role: 'user', text: 'And 9?' },
] as const;

describe('several messages in one', () => {
  test.each(['start', 'ask'])('by %s join the turn as a conversation', (how) => {
    const place = { at: 1, root: 'r', firstRunId: 'f' };
    const ask: Ask = { messages, id: 'm', by: 'ann', pin: true };
    const open = initialState(unloadedConfig('a'), { open: true });
    const { event } = acceptMessage(open, ask, 'm');
    const received =
      how === 'start' || event === null
        ? firstState({ input: { agent: 'a', messages, by: 'ann' }, ...place })
        : reduce(open, event);
    expect(stateShape(received, 'state')).toBeNull();
    const state = reduce(received, { type: 'turn-begun', at: 2 });
    expect(stateShape(state, 'state')).toBeNull();
    expect(inTurn(state)).toBe(true);
    expect(state.transcript.messages).toMatchObject([
      { role: 'user', text: 'Is 7 prime?', n: 0 },
      { role: 'assistant', text: 'Yes.', supplied: true, n: 1 },
      { role: 'user', text: 'And 9?', by: 'ann', n: 2 },
    ]);
    expect(state.transcript.messages.map((message) => 'supplied' in message)).toEqual([
      false,
      true,
      false,
    ]);
    // An assistant message that the sender passed is not an answer of this turn.
    expect(composeAnswer(state, 'steps')).not.toContain('Yes.');
  });

  test('are refused by a graph, whether it is loaded or not', () => {
    const loaded = initialState(config({ graph: mail }), { open: true });
    const problem = 'is a graph, which takes one message; send "message" or "input"';
    expect(refusalText(loaded, { messages }, 'm')).toContain(problem);
    const { event } = acceptMessage(loaded, { messages }, 'm');
    const begun = event && reduce(reduce(loaded, event), { type: 'turn-begun', at: 1 });
    expect(begun && getOutcome(begun)?.error).toContain(problem);
  });

  test.each<[unknown, string]>([
    [[], 'messages: expected a list of 1–100 messages, got 0'],
    ['x', 'messages: expected a list of 1–100 messages, got "x"'],
    [[{ role: 'system', text: 'x' }], 'messages[0].role: expected "user" or "assistant"'],
    [[{ role: 'user', text: ' ' }], 'messages[0].text: expected a text, got " "'],
    [[{ role: 'user', text: 'x', name: 1 }], 'messages[0].name: expected one of role, text'],
    [[messages[1], messages[0]], 'messages[0].role: expected "user" for the first and the last'],
    [[messages[0], messages[1]], 'messages[1].role: expected "user" for the first and the last'],
    [[{ role: 'user', text: 'x'.repeat(270_000) }], 'messages: expected at most 262144 characters'],
  ])('%j', (given, problem) => {
    expect(askProblem({ messages: given })).toContain(problem);
    expect(parseRunInput({ agent: 'a', messages: given })).toMatchObject({
      problem: expect.stringContaining(problem),
    });
  });

  test.each(['message', 'prompt', 'input'])('do not allow %s', (field) => {
    const given = { messages, [field]: field === 'input' ? {} : 'x' };
    expect(askProblem(given)).toContain(`${field}: cannot be combined with "messages"`);
    expect(parseRunInput({ agent: 'a', ...given })).toMatchObject({
      problem: expect.stringContaining(`${field}: cannot be combined with "messages"`),
    });
  });
});
