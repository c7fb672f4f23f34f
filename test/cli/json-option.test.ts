import { expect, test } from 'vitest';
import {
  collectAmounts,
  collectLimits,
  collectSettings,
  parseJsonOption,
  parseNumber,
} from '../../src/cli/input/option-parsers.js';

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

test('the letter that stands for a number in a printed command is named as such', () => {
  const of = (got: string): string =>
    `Expected your own number, got ${got}, which stands for it in a printed command; replace it.`;
  expect(() => collectAmounts('steps=N')).toThrow(of('steps=N'));
  expect(() => collectAmounts('run.cost-usd=N')).toThrow(of('cost-usd=N'));
  expect(() => collectLimits('wall=N')).toThrow(of('wall=N'));
  expect(() => parseNumber('N')).toThrow(of('N'));
  expect(() => collectSettings('temperature=N')).toThrow(of('temperature=N'));
  expect(collectSettings('letter:="N"')).toEqual({ letter: 'N' });
});
