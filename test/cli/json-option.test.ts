import { expect, test } from 'vitest';
import { parseJsonOption } from '../../src/cli/input/option-parsers.js';

test('a word in place of JSON is refused with an example', () => {
  expect(() => parseJsonOption('JSON')).toThrow(
    `Expected JSON, such as '"text"' or '{"total":3}': `,
  );
});
