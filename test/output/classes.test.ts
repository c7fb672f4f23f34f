import { describe, expect, test } from 'vitest';
import { callForClass } from '../../src/activities/model/answer-formats.js';
import type { Model, ModelUsage } from '../../src/models/model.js';
import { request } from '../models/support.js';
import {
  findClassesProblem,
  findClass,
  getClassKeys,
  MAX_CLASSES,
  countAlternatives,
  classifyInstruction,
  classifyReminder,
  voteClasses,
} from '../../src/output/classes/classes.js';

const many = Array.from({ length: 21 }, (_, index) => `class ${index}`);

test.each<[string, readonly unknown[]]>([
  ['two', ['yes', 'no']],
  ['twenty', many.slice(0, MAX_CLASSES)],
  ['labels of several words', ['a refund', 'a return', 'c++', 'c']],
  ['names that objects have', ['constructor', '__proto__']],
])('accepts %s', (_name, classes) => {
  expect(findClassesProblem(classes as string[])).toBeNull();
});

test.each<[unknown, string]>([
  [['only'], 'classes: expected 2 to 20, got 1; a provider returns the probabilities of no more'],
  [many, 'classes: expected 2 to 20, got 21; a provider returns the probabilities of no more'],
  ['ab', 'classes: expected 2 to 20, got "ab"; a provider returns the probabilities of no more'],
  [['a', ' '], 'classes: expected texts of one line with a letter or digit, got " "'],
  [['a', 7], 'classes: expected texts of one line with a letter or digit, got 7'],
  [
    ['a', 'b\nIgnore'],
    'classes: expected texts of one line with a letter or digit, got "b\\nIgnore"',
  ],
  [
    ['a', 'x'.repeat(101)],
    `classes: expected at most 100 characters each, got 101 in "${'x'.repeat(40)}…"`,
  ],
  [
    ['Spam', 'spam.'],
    'classes: expected different texts, got "Spam" and "spam.", which read the same; rename one',
  ],
])('refuses %j with a fix', (classes, problem) => {
  expect(findClassesProblem(classes as string[])).toBe(problem);
});

test('assigns a letter to each class, unless the classes are single characters', () => {
  expect(getClassKeys(['spam', 'ham', 'eggs'])).toEqual(['A', 'B', 'C']);
  expect(getClassKeys(['1', '2', 'x'])).toEqual(['1', '2', 'x']);
  expect(new Set(getClassKeys(many.slice(0, MAX_CLASSES))).size).toBe(MAX_CLASSES);
});

test('requests a letter, and lists the class of each letter', () => {
  expect(classifyInstruction(['spam', 'a letter'])).toBe(
    'Decide which one of these classes fits:\nA = spam\nB = a letter\n' +
      'Reply with its letter, a single character, and nothing else.\n' +
      'If you are not sure, reply with the most likely one.',
  );
  expect(classifyInstruction(['1', '2'])).toBe(
    'Decide which one of these answers is right:\n1\n2\n' +
      'Reply with that single character and nothing else.\n' +
      'If you are not sure, reply with the most likely one.',
  );
  expect(classifyReminder(['spam', 'ham'])).toContain('one of these characters only: A, B');
});

test('requests enough alternatives for all spellings, and at most 20', () => {
  expect(countAlternatives(['yes', 'no'])).toBe(5);
  expect(countAlternatives(many)).toBe(20);
});

test.each([
  ['A', 0],
  [' b ', 1],
  ['**B**', 1],
  ['spam', 0],
  ['"Ham."', 1],
  ['C', -1],
  ['spam ham', -1],
  ['', -1],
  ['...', -1],
])('reads %j as class %i', (text, index) => {
  expect(findClass(text, ['spam', 'ham'])).toBe(index);
});

test('counts answers, and returns the share of those that name no class', () => {
  const answers = [
    'A',
    'a.',
    'B: ham',
    '**A**) spam',
    'Spam',
    'I think so',
    'A spam mail',
    'b - ham',
  ];
  const result = voteClasses(['spam', 'ham', 'eggs'], answers);
  expect(result).toEqual({
    ok: true,
    classification: {
      best: 'spam',
      classes: [
        { name: 'spam', probability: 4 / 6 },
        { name: 'ham', probability: 2 / 6 },
        { name: 'eggs', probability: 0 },
      ],
      outside: expect.closeTo(2 / 8, 9),
      entropyBits: expect.closeTo(0.9183, 4),
      unseen: ['eggs'],
      samples: 8,
    },
  });
});

test.each([
  [[], 'None of 0 answers is a class.'],
  [['A refund', 'B2B'], 'None of 2 answers is a class; the first is "A refund".'],
])('is not ok if none of %j is a class', (answers, problem) => {
  expect(voteClasses(['spam', 'ham'], answers)).toEqual({ ok: false, problem });
});

describe('the usage of sampled classes', () => {
  const output = { type: 'classes', classes: ['spam', 'ham'], samples: 3 } as const;
  const used = {
    inputTokens: 100,
    outputTokens: 4,
    cachedTokens: 20,
    reasoningTokens: 3,
    costUsd: 0.5,
  };

  async function usageOf(
    ...usages: readonly (ModelUsage | undefined)[]
  ): Promise<ModelUsage | undefined> {
    const left = [...usages];
    const model: Model = {
      call: async () => {
        const usage = left.shift();
        return { text: 'A', calls: [], finish: 'stop', ...(usage && { usage }) };
      },
    };
    const { signal } = new AbortController();
    const messages = [{ role: 'user', text: 'Win money now. '.repeat(40) }] as const;
    const { usage } = await callForClass(model, request({ messages }), { signal, output });
    return usage;
  }

  test('is that of all replies, with their reasoning and cost', async () => {
    expect(await usageOf(used, used, { ...used, cacheWriteTokens: 5 })).toEqual({
      inputTokens: 300,
      outputTokens: 12,
      cachedTokens: 60,
      cacheWriteTokens: 5,
      reasoningTokens: 9,
      costUsd: 1.5,
    });
  });

  test('is estimated for the replies that have none', async () => {
    const none = await usageOf(undefined, undefined, undefined);
    const one = (none?.inputTokens ?? 0) / 3;
    expect(one).toBeGreaterThan(100);
    expect(none?.estimated).toBe(true);
    const partly = await usageOf(used, undefined, used);
    expect(partly).toMatchObject({ inputTokens: 200 + one, reasoningTokens: 6, estimated: true });
    expect(partly).not.toHaveProperty('costUsd');
  });
});
