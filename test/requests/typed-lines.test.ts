import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { typedLines } from '../../src/cli/requests/decide-at-terminal.js';

/** A terminal that gives a line to the open question, as readline does. */
function fakeTerminal() {
  const events = new EventEmitter();
  let open: ((line: string) => void) | null = null;
  const question = (): Promise<string> => new Promise((resolve) => (open = resolve));
  return {
    on: events.on.bind(events),
    question,
    type(line: string) {
      const answer = open;
      open = null;
      if (answer === null) events.emit('line', line);
      else answer(line);
    },
  };
}

test('a line is taken by the next question of a decision, and never by one after a sent decision', async () => {
  const terminal = fakeTerminal();
  const notes: string[] = [];
  const { signal } = new AbortController();
  const { ask, during } = typedLines(terminal, { note: (line) => notes.push(line), signal });
  terminal.type('yes');
  expect(notes.splice(0)).toEqual([
    'Not read, since no question was open: yes. Type it again if you are asked.',
  ]);

  const first = ask('yes / no?');
  terminal.type('deny');
  terminal.type('too dear');
  terminal.type('one more');
  expect(await first).toBe('deny');
  expect(await ask('Reason (optional):')).toBe('too dear');
  expect(notes.splice(0)).toEqual(['Reason (optional): too dear']);

  await during(async () => {
    terminal.type('yes');
    terminal.type(' ');
  });
  expect(notes.splice(0).map((note) => note.split('. ')[0])).toEqual([
    'Not read, since no question was open: one more',
    'Not read, since no question was open: yes',
  ]);
  const next = ask('yes / no?');
  terminal.type('no');
  expect(await next).toBe('no');
  expect(notes).toEqual([]);
});
