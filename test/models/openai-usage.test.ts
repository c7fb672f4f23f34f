import { expect, test } from 'vitest';
import { costOf } from '../../src/core/limits.js';
import { parseUsage } from '../../src/models/openai/usage.js';

function usage(counts: {
  prompt?: unknown;
  completion?: unknown;
  total?: unknown;
  cached?: unknown;
  reasoning?: unknown;
}): ReturnType<typeof parseUsage> {
  const { prompt = 100, completion = 50, total, cached, reasoning } = counts;
  return parseUsage({
    prompt_tokens: prompt,
    completion_tokens: completion,
    ...(total !== undefined && { total_tokens: total }),
    ...(cached !== undefined && { prompt_tokens_details: { cached_tokens: cached } }),
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  });
}

test('treats reasoning as part of the output, as OpenAI does', () => {
  expect(usage({ total: 150, reasoning: 30 })).toEqual({
    inputTokens: 100,
    outputTokens: 50,
    cachedTokens: 0,
    reasoningTokens: 30,
  });
});

test('adds reasoning that is counted separately, as by xAI', () => {
  expect(usage({ prompt: 12, completion: 2, total: 331, reasoning: 317 })).toEqual({
    inputTokens: 12,
    outputTokens: 319,
    cachedTokens: 0,
    reasoningTokens: 317,
  });
});

test('adds what only the total includes, as by Gemini', () => {
  expect(usage({ total: 210 })).toMatchObject({ outputTokens: 110, reasoningTokens: 60 });
});

test.each([
  ['cached tokens counted separately', { total: 190, cached: 40 }],
  ['a total that is too small', { total: 3 }],
  ['a total that is not a number', { total: 'many' }],
  ['no total', {}],
  ['more reasoning than the total has room for', { total: 160, reasoning: 30 }],
])('adds nothing for %s', (_name, counts) => {
  expect(usage(counts)?.outputTokens).toBe(50);
});

test.each([null, undefined, -1, 1.5, 'x'])('leaves out reasoning that is %j', (reasoning) => {
  expect(usage({ total: 150, reasoning })).not.toHaveProperty('reasoningTokens');
});

test('reports zero reasoning if the provider does', () => {
  expect(usage({ reasoning: 0 })?.reasoningTokens).toBe(0);
});

test('never reports more reasoning than output', () => {
  expect(usage({ completion: 5, reasoning: 30 })?.reasoningTokens).toBe(5);
});

test('counts reasoning once, as output, and cached input at its own price', () => {
  const price = { input: 1, cachedInput: 0.1, output: 10 };
  const used = usage({ total: 150, cached: 40, reasoning: 30 });
  expect(used && costOf(used, price)).toBeCloseTo((60 + 4 + 500) / 1e6, 12);
  expect(used && costOf(used, null)).toBeNull();
});
