import { expect, test } from 'vitest';
import { costOf } from '../../src/core/rules/spending.js';
import { parseUsage } from '../../src/models/wire/content.js';

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

const COUNTS = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 };

test.each<[string, object]>([
  ['its own details', { prompt_tokens_details: { cached_tokens: 40 } }],
  ['the details of Responses', { input_tokens_details: { cached_tokens: 40 } }],
  ['the top level', { cached_tokens: 40 }],
  ["DeepSeek's name", { prompt_cache_hit_tokens: 40, prompt_cache_miss_tokens: 60 }],
  ["Anthropic's name", { cache_read_input_tokens: 40 }],
  ['a text', { cached_tokens: '40' }],
  ['a name beside null details', { prompt_tokens_details: null, cached_tokens: 40 }],
  [
    'a name beside details that count none',
    { prompt_tokens_details: { cached_tokens: 0 }, prompt_cache_hit_tokens: 40 },
  ],
])('reads cached tokens from %s', (_name, more) => {
  expect(parseUsage({ ...COUNTS, ...more })).toEqual({
    inputTokens: 100,
    outputTokens: 50,
    cachedTokens: 40,
  });
});

test.each<[string, object]>([
  ['texts', { prompt_tokens: '100', completion_tokens: '50' }],
  ["Anthropic's names", { input_tokens: 100, output_tokens: 50 }],
  ['a total that replaces the completion', { prompt_tokens: 100, total_tokens: 150 }],
  [
    'a total that replaces a null',
    { prompt_tokens: null, completion_tokens: 50, total_tokens: 150 },
  ],
])('reads counts from %s', (_name, counts) => {
  expect(parseUsage(counts)).toEqual({ inputTokens: 100, outputTokens: 50, cachedTokens: 0 });
});

test.each<[unknown]>([
  [{ prompt_tokens: null, completion_tokens: null, total_tokens: null }],
  [{ prompt_tokens: 'many', completion_tokens: 5 }],
  [{ total_tokens: 5 }],
  [null],
  ['150'],
])('does not guess counts from %j', (counts) => {
  expect(parseUsage(counts)).toBeUndefined();
});

test('adds cached tokens that a gateway counts beside the prompt', () => {
  const counts = { ...COUNTS, total_tokens: 190, cached_tokens: 40 };
  expect(parseUsage(counts)).toEqual({ inputTokens: 140, outputTokens: 50, cachedTokens: 40 });
});

test.each<[string, object]>([
  ['OpenRouter', { prompt_tokens_details: { cache_write_tokens: 30 } }],
  ['LiteLLM', { cache_creation_input_tokens: 30 }],
])('reads tokens written to the cache from %s', (_name, more) => {
  expect(parseUsage({ ...COUNTS, ...more })?.cacheWriteTokens).toBe(30);
});

test('reads the cost that a router reports, and uses it if no price is known', () => {
  const used = parseUsage({ ...COUNTS, cost: 0.0042 });
  expect(used?.costUsd).toBe(0.0042);
  expect(parseUsage({ ...COUNTS, cost: { total_cost: 0.5 } })?.costUsd).toBe(0.5);
  expect(parseUsage({ ...COUNTS, cost: '0.1' })).not.toHaveProperty('costUsd');
  expect(used && costOf(used, null)).toBe(0.0042);
  expect(used && costOf(used, { input: 1, cachedInput: 1, output: 1 })).toBeCloseTo(150 / 1e6, 12);
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
