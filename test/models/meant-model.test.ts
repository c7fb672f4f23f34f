import { expect, test } from 'vitest';
import { meantModel } from '../../src/models/known-models.js';

test.each([
  ['mian', 'main'],
  ['dmo', 'demo'],
  ['demmo', 'demo'],
  ['mstral', 'mistral'],
])('%s is a mistyped %s', (name, entry) => {
  expect(meantModel(name, entry === 'demo' ? [] : [entry])).toBe(entry);
});

test.each([
  ['gpt-4', 'gpt-4o'],
  ['mixtral', 'mistral'],
  ['ministral', 'mistral'],
  ['sonar', 'sonar-pro'],
  ['command-r', 'command-r-plus'],
  ['gemma-2b', 'gemma-2b-it'],
  ['gpt-5.2-mini', 'gpt-5.2-nano'],
  ['memo', 'demo'],
  ['demo', 'main'],
])('%s is a model beside %s', (name, entry) => {
  expect(meantModel(name, [entry])).toBeUndefined();
});
