import { expect, test } from 'vitest';
import { estimateUsage } from '../../src/models/model.js';
import { findPrice } from '../../src/models/known-models.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { assistantCalls, request } from './support.js';

test('finds the price of a model and of its snapshots', () => {
  expect(findPrice('gpt-4.1-mini')).toEqual({ input: 0.4, cachedInput: 0.1, output: 1.6 });
  expect(findPrice('gpt-4.1-mini-2025-04-14')).toEqual(findPrice('gpt-4.1-mini'));
});

test('returns null for an unknown price', () => {
  for (const model of ['llama3.2', 'gpt-4.1-mini-ft', '', 'constructor']) {
    expect(findPrice(model)).toBeNull();
  }
});

test('estimates usage from the whole request and reply', () => {
  const bare = estimateUsage(request(), replyText('hi'));
  expect(bare.cachedTokens).toBe(0);
  const tool = { name: 'f', description: 'x'.repeat(300), parameters: {} };
  const withTool = estimateUsage(request({ tools: [tool] }), replyText('hi'));
  expect(withTool.inputTokens - bare.inputTokens).toBeGreaterThan(75);
  const long = assistantCalls({ id: 'c', name: 'f', arguments: JSON.stringify('x'.repeat(300)) });
  const withCall = estimateUsage(request({ messages: [long] }), replyText('hi'));
  expect(withCall.inputTokens - bare.inputTokens).toBeGreaterThan(70);
  const calling = estimateUsage(request(), replyCall('f', { text: 'x'.repeat(300) }));
  expect(calling.outputTokens).toBeGreaterThan(75);
});
