import { resolve } from 'node:path';
import type { LanguageModelV3GenerateResult } from '@ai-sdk/provider';
import { MockLanguageModelV3 } from 'ai/test';
import { expect, test } from 'vitest';
import { aiSdkModel } from '../../src/ai-sdk.js';
import { loadConfig } from '../../src/cli/input/load-config.js';
import { createMemoryRig } from '../support/memory-rig.js';

type Content = LanguageModelV3GenerateResult['content'];

function result(
  content: Content,
  unified: LanguageModelV3GenerateResult['finishReason']['unified'] = 'stop',
): LanguageModelV3GenerateResult {
  return {
    content,
    finishReason: { unified, raw: undefined },
    usage: {
      inputTokens: { total: 90, noCache: 26, cacheRead: 64, cacheWrite: undefined },
      outputTokens: { total: 12, text: 12, reasoning: undefined },
    },
    warnings: [],
  };
}

const textContent = (text: string): Content => [{ type: 'text', text }];

test('an agent works with a model of the AI SDK as with any model', async () => {
  const rig = await createMemoryRig();
  try {
    const { agents } = await loadConfig({ folder: resolve('examples', 'ai-sdk'), env: {} });
    const input = JSON.stringify({ number: 4 });
    const model = new MockLanguageModelV3({
      doGenerate: [
        result([{ type: 'tool-call', toolCallId: 'x', toolName: 'shelf', input }], 'tool-calls'),
        result(textContent('Bolts and nuts.')),
      ],
    });
    await rig.worker(agents, { models: { mistral: aiSdkModel(model) } });
    const { outcome } = await rig.run({ agent: 'clerk', message: 'What is on shelf 4?' });
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Bolts and nuts.', toolCalls: 1 });
    expect(outcome.usage).toMatchObject({ inputTokens: 180, cachedTokens: 128, outputTokens: 24 });
    const [first, second] = model.doGenerateCalls;
    expect(first).toMatchObject({
      tools: expect.arrayContaining([expect.objectContaining({ type: 'function', name: 'shelf' })]),
      toolChoice: { type: 'auto' },
    });
    expect(second?.prompt).toMatchObject([
      { role: 'system' },
      { role: 'user', content: [{ type: 'text', text: 'What is on shelf 4?' }] },
      { role: 'assistant', content: [{ toolName: 'shelf', input: { number: 4 } }] },
      {
        role: 'tool',
        content: [{ toolName: 'shelf', output: { type: 'text', value: '["bolts","nuts"]' } }],
      },
    ]);
  } finally {
    await rig.close();
  }
});
