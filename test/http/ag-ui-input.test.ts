import { expect, test } from 'vitest';
import { readRunInput } from '../../src/http/ag-ui-input.js';

test('ids of threads may be long, and one that is too long is refused with its length', () => {
  const body = { threadId: 't'.repeat(1_000), runId: 'r'.repeat(1_000), messages: [] };
  expect(readRunInput(body)).toMatchObject({ threadId: body.threadId, runId: body.runId });
  for (const name of ['threadId', 'runId']) {
    expect(() => readRunInput({ ...body, [name]: 'x'.repeat(1_001) })).toThrow(
      `${name}: expected at most 1000 characters, got 1001; use a shorter id`,
    );
  }
  const said = { ...body, messages: [{ id: 'm'.repeat(161), role: 'user', content: 'hi' }] };
  expect(() => readRunInput(said)).toThrow('ids of at most 160 characters, got 161');
});

test.each([
  [true, /^resume\[0\]\.payload: expected an object .* with `approved` or `as`, got true$/],
  [{ answer: 'x' }, /^resume\[0\]\.payload: expected an object .* with `approved` or `as`, got /],
  [{ approved: false, reason: 'x'.repeat(2_001) }, /^resume\[0\]\.payload\.reason: /],
])('a wrong answer to an interrupt names what the client sent: %j', (payload, message) => {
  const interruptId = `r1.${'a'.repeat(64)}`;
  const resume = [{ interruptId, status: 'resolved', payload }];
  expect(() => readRunInput({ threadId: 't', runId: 'r', messages: [], resume })).toThrow(message);
});

test('a wrong body names the field and what was expected, as every other endpoint does', () => {
  const messages: readonly unknown[] = [];
  const wrong =
    (body: unknown): (() => unknown) =>
    () =>
      readRunInput(body);
  expect(wrong({ runId: 'r', messages })).toThrow(
    /^threadId: missing, expected string; send \{ "threadId": "THREAD", "runId"/,
  );
  expect(wrong({ threadId: 't', runId: 7, messages })).toThrow(/^runId: expected string, got 7/);
  expect(wrong({ threadId: 't', runId: 'r' })).toThrow(
    /^messages: missing, expected array; send \{ /,
  );
});
