import { expect, test } from 'vitest';
import { estimateUsage } from '../../src/models/estimate.js';
import { priceOf } from '../../src/models/prices.js';
import { callTool, say } from '../../src/models/scripted.js';
import { asked, request } from './support.js';

test('knows the price of a model and of its snapshots', () => {
  expect(priceOf('gpt-4.1-mini')).toEqual({ input: 0.4, cachedInput: 0.1, output: 1.6 });
  expect(priceOf('gpt-4.1-mini-2025-04-14')).toEqual(priceOf('gpt-4.1-mini'));
});

test('knows no price where it knows none', () => {
  for (const model of ['llama3.2', 'gpt-4.1-mini-ft', '', 'constructor']) {
    expect(priceOf(model)).toBeNull();
  }
});

test('takes a price that is given before its own', () => {
  const own = { input: 1, cachedInput: 1, output: 1 };
  expect(priceOf('gpt-4o', { 'gpt-4o': own })).toBe(own);
  expect(priceOf('mine', { mine: own })).toBe(own);
  expect(priceOf('toString', { mine: own })).toBeNull();
});

test('estimates usage from all that is sent and said', () => {
  const bare = estimateUsage(request(), say('hi'));
  expect(bare.cachedTokens).toBe(0);
  const tool = { name: 'f', description: 'x'.repeat(300), parameters: {} };
  const withTool = estimateUsage(request({ tools: [tool] }), say('hi'));
  expect(withTool.inputTokens - bare.inputTokens).toBeGreaterThan(75);
  const long = asked({ id: 'c', name: 'f', arguments: JSON.stringify('x'.repeat(300)) });
  const withCall = estimateUsage(request({ messages: [long] }), say('hi'));
  expect(withCall.inputTokens - bare.inputTokens).toBeGreaterThan(70);
  const calling = estimateUsage(request(), callTool('f', { text: 'x'.repeat(300) }));
  expect(calling.outputTokens).toBeGreaterThan(75);
});
