import { expect, test } from 'vitest';
import { readRunInput } from '../../src/http/ag-ui-input.js';

test.each([
  [true, /^resume\.0\.payload: expected an object .* with `approved` or `as`, got true$/],
  [{ answer: 'x' }, /^resume\.0\.payload: expected an object .* with `approved` or `as`, got /],
  [{ approved: false, reason: 'x'.repeat(2_001) }, /^resume\.0\.payload\.reason: /],
])('a wrong answer to an interrupt names what the client sent: %j', (payload, message) => {
  const interruptId = `r1.${'a'.repeat(64)}`;
  const resume = [{ interruptId, status: 'resolved', payload }];
  expect(() => readRunInput({ threadId: 't', runId: 'r', messages: [], resume })).toThrow(message);
});
