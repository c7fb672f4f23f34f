import { describe, expect, test } from 'vitest';
import { acceptMessage } from '../../src/core/run/ask.js';
import type { Ask } from '../../src/core/input/inbox.js';
import { reduce } from '../../src/core/run/reduce.js';
import { applyStoredMessages } from '../../src/core/run/carry.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import type { Message, RefusedPart } from '../../src/core/transcript/messages.js';
import { chain, FIRST_LINK, toPromptMessage } from '../../src/core/transcript/transcript.js';
import { getOpenBatch, getOutcome } from '../../src/core/state/turn.js';
import type { Fact } from '../../src/core/run/events.js';
import { after, blocked, canceled, failed, model, scheduled, update } from '../support/facts.js';
import { callReply, config, textReply, withResults } from '../support/scripts.js';

const image = { type: 'image', url: 'https://example.org/a.png' } as const;

/** Begins a turn with this message. */
function turn(state: RunState, ask: Ask): RunState {
  const { event } = acceptMessage(state, ask, ask.message ?? '');
  if (event === null) throw new Error('expected an event');
  return reduce(reduce(state, event), { type: 'turn-begun', at: 0 });
}

function recorded(state: RunState): RunState {
  return reduce(state, { type: 'turn-recorded', at: 0 });
}

const start = initialState(config(), { open: true });
const answered = recorded(
  reduce(turn(start, { message: 'one' }), { type: 'model-replied', reply: textReply('1'), at: 0 }),
);

function refuse(state: RunState, refused?: RefusedPart): RunState {
  const event = { type: 'model-failed', reason: 'error', message: 'no', at: 0 } as const;
  return recorded(reduce(state, refused === undefined ? event : { ...event, refused }));
}

function promptOf({ transcript }: RunState): readonly string[] {
  const { messages, head, chunks } = transcript;
  const prompts = messages.map(toPromptMessage);
  if (chunks.length === 0) expect(prompts.reduce(chain, FIRST_LINK)).toBe(head);
  return prompts.map(({ text, ...rest }) => ('attachments' in rest ? `${text} +` : text));
}

const marks = ({ transcript }: RunState): readonly (RefusedPart | undefined)[] =>
  transcript.messages.map(({ refused }) => refused);

const MESSAGE = '[A message was here. The provider refused it, so it was left out.]';
const ATTACHMENTS =
  '[The attachments of this message were here. The provider refused them, so they were left out.]';
const RESULT = '[The result of this call was here. The provider refused it, so it was left out.]';

describe('after a refused turn', () => {
  const two = turn(answered, { message: 'two', attachments: [image] });

  test('attachments leave the prompt, the text stays, and the transcript keeps both', () => {
    const next = refuse(two, 'attachments');
    expect(promptOf(next)).toEqual(['one', '1', `two\n\n${ATTACHMENTS}`]);
    expect(marks(next)).toEqual([undefined, undefined, 'attachments']);
    expect(next.transcript.messages[2]).toMatchObject({ text: 'two', attachments: [image] });
    expect(next.transcript.tokens).toBeLessThan(two.transcript.tokens);
  });

  test('what is new leaves the prompt, and nothing that the model has answered', () => {
    expect(promptOf(refuse(two, 'message'))).toEqual(['one', '1', MESSAGE]);
    // Without another part at fault, attachments are no reason.
    const plain = turn(answered, { message: 'two' });
    expect(promptOf(refuse(plain, 'attachments'))).toEqual(['one', '1', MESSAGE]);
  });

  test('messages of earlier turns that no reply followed leave too', () => {
    const third = turn(refuse(two), { message: 'three' });
    expect(promptOf(third)).toEqual(['one', '1', 'two +', 'three']);
    expect(promptOf(refuse(third, 'message'))).toEqual(['one', '1', MESSAGE, MESSAGE]);
  });

  test('attachments of answered messages leave if a later model refuses them', () => {
    const seen = reduce(two, { type: 'model-replied', reply: textReply('2'), at: 0 });
    const third = turn(recorded(seen), { message: 'three' });
    const next = refuse(third, 'attachments');
    expect(promptOf(next)).toEqual(['one', '1', `two\n\n${ATTACHMENTS}`, '2', 'three']);
  });

  test('a refused result of a call leaves, and the call keeps a result', () => {
    const asked = reduce(turn(answered, { message: 'two' }), {
      type: 'model-replied',
      reply: callReply(['look', {}]),
      at: 0,
    });
    const id = getOpenBatch(asked)?.calls[0]?.id ?? '';
    const acted = withResults(asked, [{ id, ok: true, text: 'poison', executed: true }]);
    const next = refuse(acted, 'message');
    expect(promptOf(next)).toEqual(['one', '1', 'two', '', RESULT]);
    expect(next.transcript.messages.at(-1)).toMatchObject({ text: 'poison', refused: 'message' });
  });

  test('nothing leaves if the messages are not at fault', () => {
    expect(promptOf(refuse(two))).toEqual(['one', '1', 'two +']);
  });

  test('a message that alone is too long for the model leaves', () => {
    const event = {
      type: 'model-failed',
      reason: 'context_too_long',
      message: 'no',
      at: 0,
    } as const;
    const long = reduce(turn(start, { message: 'long' }), event);
    expect(promptOf(long)).toEqual([MESSAGE]);
  });

  test('what the closing call could not send leaves, and the turn ends with an answer', () => {
    const phase = { type: 'closing', reason: 'steps' } as const;
    const closing = { ...two, turn: { ...two.turn, phase } };
    expect(promptOf(refuse(closing, 'message'))).toEqual(['one', '1', MESSAGE]);
    expect(promptOf(refuse(closing, 'attachments'))).toEqual(['one', '1', `two\n\n${ATTACHMENTS}`]);
    expect(promptOf(refuse(closing))).toEqual(['one', '1', 'two +']);
    for (const state of [refuse(closing), refuse(closing, 'message')])
      expect(getOutcome(state)).toMatchObject({ status: 'stopped', reason: 'steps' });
  });

  test('what a filter withheld leaves with its message; what the model refused stays to be seen', () => {
    const reply = (finish: 'filtered' | 'refused') =>
      recorded(reduce(two, { type: 'model-replied', reply: textReply('half', finish), at: 0 }));
    expect(promptOf(reply('filtered'))).toEqual(['one', '1', MESSAGE, '']);
    expect(reply('filtered').transcript.messages[3]).toMatchObject({ text: 'half' });
    expect(promptOf(reply('refused'))).toEqual(['one', '1', MESSAGE, 'half']);
  });

  test('a message that blocked the run leaves when its turn is canceled', () => {
    const calling = after(two, scheduled(model()));
    const stop = (state: RunState, ...facts: readonly Fact[]): RunState =>
      reduce(after(state, update('cancelTurn'), ...facts), {
        type: 'turn-interrupted',
        by: 'cancelTurn',
        at: 0,
      });
    const stuck = after(calling, blocked(model(), 'bad_request'));
    expect(promptOf(stuck)).toEqual(['one', '1', 'two +']);
    expect(promptOf(stop(stuck))).toEqual(['one', '1', MESSAGE]);
    const probe = { ...model(), input: { blocked: 'bad_request' } };
    const probing = after(stuck, scheduled(probe, stuck.work[0]?.block?.until));
    for (const fact of [canceled(probe), failed(probe, 'x')]) {
      expect(promptOf(stop(probing, fact))).toEqual(['one', '1', MESSAGE]);
      expect(promptOf(stop(calling, fact))).toEqual(['one', '1', 'two +']);
    }
    expect(promptOf(stop(after(calling, blocked(model(), 'quota'))))).toEqual([
      'one',
      '1',
      'two +',
    ]);
  });

  test('it leaves in a later segment too, where older messages are in a chunk', () => {
    const blob = { sha256: '0'.repeat(64), bytes: 1 };
    const gone = answered.transcript.messages.map((message: Message) => toPromptMessage(message));
    const carried = applyStoredMessages(answered, { archived: 0, chunk: { blob, count: 2 } });
    const next = refuse(turn(carried, { message: 'two' }), 'message');
    expect(promptOf(next)).toEqual([MESSAGE]);
    const all = [...gone, ...next.transcript.messages.map(toPromptMessage)];
    expect(next.transcript.head).toBe(all.reduce(chain, FIRST_LINK));
  });
});
