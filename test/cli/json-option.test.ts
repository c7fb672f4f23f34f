import { expect, test } from 'vitest';
import { parseJsonOption } from '../../src/cli/input/option-parsers.js';

test('a word in place of JSON is refused with an example', () => {
  expect(() => parseJsonOption('total')).toThrow(
    `Expected JSON, such as '"text"' or '{"total":3}': `,
  );
});

test('the word that stands for JSON in a printed command is named as such', () => {
  expect(() => parseJsonOption('JSON')).toThrow(
    'Expected your own JSON, got JSON, which stands for it in a printed command; replace it.',
  );
});
