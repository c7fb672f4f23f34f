import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import type { StreamEvent } from '../../src/live/stream.js';
import { textOfTurn } from '../../src/client/read-methods.js';

const place = { turn: 1, step: 1, attempt: 1, offset: 0, position: '' };
const delta = (text: string, turn = 1) =>
  ({ ...place, type: 'delta', kind: 'text', text, turn }) as const satisfies StreamEvent;
const superseded = { ...place, type: 'superseded' } as const satisfies StreamEvent;
const gap = { ...place, type: 'gap', until: null } as const satisfies StreamEvent;
const durable = { offset: 'o', at: 0, position: 'p' };
const message = (text: string, turn = 1, more: object = {}) =>
  ({ role: 'assistant', n: 1, turn, step: 1, at: 0, text, ...more }) as never;
const replied = (text: string, turn = 1): StreamEvent => ({
  ...durable,
  type: 'model-replied',
  message: message(text, turn),
});
/** A reply of which the history has only the head and the tail. */
const cut = (text: string): StreamEvent => ({
  ...durable,
  type: 'model-replied',
  message: message(text, 1, { blob: { sha256: '0'.repeat(64), bytes: 9 } }),
});
const refused = (text: string): StreamEvent => ({
  ...durable,
  type: 'answer-refused',
  problem: 'x',
  message: message(text),
});
const ended = (answer: string | null, turn = 1): StreamEvent => ({
  ...durable,
  type: 'turn-ended',
  turn,
  outcome: { answer } as Outcome,
});

async function* stream(events: readonly StreamEvent[]) {
  yield* events;
}

async function read(events: readonly StreamEvent[], onReset?: (kept: string) => void) {
  const texts: string[] = [];
  const options = { turn: 1, ...(onReset && { onReset }) };
  for await (const text of textOfTurn(stream(events), options)) texts.push(text);
  return texts;
}

describe('the text of a turn', () => {
  test.each<[string, readonly StreamEvent[], readonly string[]]>([
    [
      'comes as it is written',
      [delta('Hel'), delta('lo'), replied('Hello'), ended('Hello')],
      ['Hel', 'lo'],
    ],
    ['comes whole without deltas', [replied('Hello'), ended('Hello'), delta('x')], ['Hello']],
    [
      'leaves out other turns',
      [delta('old', 2), replied('old', 2), ended('old', 2), replied('new'), ended('new')],
      ['new'],
    ],
    [
      'has an empty line between two replies',
      [delta('I look.'), replied('I look.'), replied('It '), delta('x'), ended(null)],
      ['I look.', '\n\nIt ', '\n\nx'],
    ],
    [
      'goes on where a lost attempt stopped',
      [delta('Hello w'), superseded, delta('Hel'), delta('lo wo'), replied('Hello world')],
      ['Hello w', 'o', 'rld'],
    ],
    [
      'restarts after an empty line if the new attempt says something else',
      [delta('Hello'), superseded, delta('Good'), delta('bye'), replied('Goodbye')],
      ['Hello', '\n\nGood', 'bye'],
    ],
    [
      'is completed by the durable reply after a gap',
      [delta('a'), gap, delta('c'), replied('abc'), ended('abc')],
      ['a', 'bc'],
    ],
    [
      'does not count a refused answer',
      [delta('{"a"'), refused('{"a"'), replied('{"b":1}'), ended('{"b":1}')],
      ['{"a"', '\n\n{"b":1}'],
    ],
    ['is the answer if no reply had it', [replied(''), ended('composed')], ['composed']],
    [
      'is not followed by the head and tail of a long reply that was shown',
      [delta('a long '), delta('text'), cut('a … t'), delta('and more'), replied('and more')],
      ['a long ', 'text', '\n\nand more'],
    ],
  ])('%s', async (_what, events, texts) => {
    expect(await read(events)).toEqual(texts);
  });

  test('names what still counts when a reply is void', async () => {
    let shown = '';
    const kepts: string[] = [];
    const events = [
      replied('First.'),
      delta('Hello'),
      superseded,
      delta('Bye'),
      replied('Bye'),
      ended('Bye'),
    ];
    const reset = (kept: string): void => {
      kepts.push(kept);
      shown = kept;
    };
    for await (const text of textOfTurn(stream(events), { turn: 1, onReset: reset })) shown += text;
    expect(kepts).toEqual(['First.']);
    expect(shown).toBe('First.\n\nBye');
  });

  test('is what the replies say, whatever attempts came before', async () => {
    const attempt = fc.array(fc.constantFrom('a', 'b', 'ab', 'é😀'), { maxLength: 4 });
    const reply = fc.record({ attempts: fc.array(attempt, { maxLength: 3 }), last: attempt });
    await fc.assert(
      fc.asyncProperty(fc.array(reply, { minLength: 1, maxLength: 3 }), async (replies) => {
        const events = replies.flatMap(({ attempts, last }) => [
          ...attempts.flatMap((texts) => [...texts.map((text) => delta(text)), superseded]),
          ...last.map((text) => delta(text)),
          replied(last.join('')),
        ]);
        const texts = replies.map(({ last }) => last.join('')).filter((text) => text !== '');
        let shown = '';
        const onReset = (kept: string): void => void (shown = kept);
        const source = stream([...events, ended(null)]);
        for await (const text of textOfTurn(source, { turn: 1, onReset })) shown += text;
        expect(shown).toBe(texts.join('\n\n'));
      }),
    );
  });
});
