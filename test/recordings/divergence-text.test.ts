import { expect, test } from 'vitest';
import { createDivergence } from '../../src/recordings/divergence.js';
import type { Json } from '../../src/core/text/json.js';

const long = (end: string): string => `${'The same words. '.repeat(20)}${end}`;
const failed = (message: string): string =>
  JSON.stringify({ error: { type: 'invalid_arguments', message } });

const SAID: readonly (readonly [string, Json, Json, string])[] = [
  [
    'an answer',
    { role: 'assistant', text: 'Yes.' },
    { role: 'assistant', text: 'No.' },
    'said "Yes."; recorded "No."',
  ],
  [
    'a failed call',
    { role: 'tool', text: failed('euros: expected number, got "two"') },
    { role: 'tool', text: 'paid' },
    'has the result "invalid_arguments: euros: expected number, got \\"two\\""; recorded the result "paid"',
  ],
  [
    'a failed call with several problems',
    { role: 'tool', text: failed('The arguments of pay are not valid:\n- order: a\n- euros: b') },
    { role: 'tool', text: 'paid' },
    'has the result "invalid_arguments: The arguments of pay are not valid: order: a; euros: b"; recorded the result "paid"',
  ],
  [
    'a long text',
    { role: 'assistant', text: long('Paid.') },
    { role: 'assistant', text: long('Refused.') },
    'said "…ds. The same words. Paid."; recorded "…ds. The same words. Refused."',
  ],
  [
    'a text that is missing',
    null,
    { role: 'user', text: 'Go' },
    'said nothing; recorded the message "Go"',
  ],
];

test.each(SAID)('a difference in words shows them plainly: %s', (_, actual, recorded, text) => {
  const place = { agent: 'desk', turn: 1, step: 2, kind: 'message' } as const;
  expect(createDivergence({ ...place, actual, recorded }).text).toBe(
    `desk, turn 1, step 2: ${text}`,
  );
});
