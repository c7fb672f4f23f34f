import { resolve } from 'node:path';
import type { LanguageModelV3GenerateResult } from '@ai-sdk/provider';
import { MockLanguageModelV3 } from 'ai/test';
import { expect, test } from 'vitest';
import { aiSdkModel } from '../../examples/ai-sdk/ai-sdk-model.js';
import { loadConfig } from '../../src/cli/input/load-config.js';
import type { ModelDelta, ModelReply } from '../../src/models/model.js';
import { failureOf, request } from '../models/support.js';
import { createRig } from '../support/rig.js';

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

async function ask(answer: LanguageModelV3GenerateResult | Error): Promise<ModelReply> {
  const doGenerate = async (): Promise<LanguageModelV3GenerateResult> => {
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const model = aiSdkModel(new MockLanguageModelV3({ doGenerate }));
  return await model.call(request(), { signal: new AbortController().signal });
}

test('an agent works with a model of the AI SDK as with any model', async () => {
  const rig = await createRig();
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

test.each<[LanguageModelV3GenerateResult, Partial<ModelReply>]>([
  [result(textContent('Half'), 'length'), { text: 'Half', finish: 'length' }],
  [result(textContent('Hm'), 'content-filter'), { text: 'Hm', calls: [], finish: 'filtered' }],
  [result(textContent('Hi'), 'other'), { text: 'Hi', finish: 'stop' }],
])('reads the reply %#', async (answer, expected) => {
  expect(await ask(answer)).toMatchObject(expected);
});

test.each<[LanguageModelV3GenerateResult | Error, object]>([
  [result([]), { kind: 'empty' }],
  [result(textContent('x'), 'error'), { kind: 'retry' }],
  [new TypeError('fetch failed'), { kind: 'retry' }],
  [
    Object.assign(new Error('no'), { statusCode: 401, isRetryable: false }),
    { kind: 'credentials' },
  ],
  [Object.assign(new Error('no'), { statusCode: 429, isRetryable: true }), { kind: 'retry' }],
  [Object.assign(new Error('no'), { statusCode: 400, isRetryable: false }), { kind: 'request' }],
])('classifies the failure %#', async (answer, details) => {
  expect((await failureOf(ask(answer))).details).toMatchObject(details);
});

test('emits a whole reply, and a listener that throws does not affect it', async () => {
  const call = { type: 'tool-call', toolCallId: 'x', toolName: 'shelf', input: '{}' } as const;
  const content: Content = [...textContent('I look.'), call];
  const model = aiSdkModel(new MockLanguageModelV3({ doGenerate: result(content, 'tool-calls') }));
  const { signal } = new AbortController();
  const deltas: ModelDelta[] = [];
  await model.call(request(), { signal, onDelta: (delta) => void deltas.push(delta) });
  expect(deltas).toEqual([
    { kind: 'text', text: 'I look.' },
    { kind: 'call', index: 0, name: 'shelf', text: '{}' },
  ]);
  const onDelta = (): never => {
    throw new Error('the reader is at fault');
  };
  expect(await model.call(request(), { signal, onDelta })).toMatchObject({ finish: 'calls' });
});

test('makes no request for a signal that has aborted', async () => {
  const mock = new MockLanguageModelV3({ doGenerate: result(textContent('x')) });
  const reason = new Error('canceled before');
  const context = { signal: AbortSignal.abort(reason) };
  await expect(aiSdkModel(mock).call(request(), context)).rejects.toBe(reason);
  expect(mock.doGenerateCalls).toHaveLength(0);
});
