import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { anthropicModel } from '../../src/models/anthropic/model.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createMemoryRig } from '../support/memory-rig.js';

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: ({ at }) => `saw ${at}`,
});

const usage = {
  prompt_tokens: 1_000,
  completion_tokens: 100,
  prompt_tokens_details: { cached_tokens: 600, cache_write_tokens: 300 },
};

test('thinking blocks of Claude are sent back in every later request', async () => {
  const [rig, stub] = [await createMemoryRig(), await startStub()];
  try {
    const model = anthropicModel({ apiKey: 'canary-key-1234', baseUrl: stub.baseUrl });
    const agent = defineAgent({
      name: 'thinker',
      instructions: 'help',
      model: 'claude-sonnet-4-6',
      tools: [look],
      settings: { thinking: { type: 'enabled', budget_tokens: 2_000 } },
      output: z.object({ seen: z.string() }),
    });
    const price = { input: 3, cachedInput: 0.3, cacheWrite: 3.75, output: 15 };
    await rig.worker([agent], { models: { 'claude-sonnet-4-6': { ...model, price } } });
    const call = { name: 'look', arguments: { at: 'x' } };
    stub.script(
      replyCalls([call], { reasoning: 'First x.', text: 'I look.', usage }),
      replyCalls([call, call], { reasoning: 'Again.', usage }),
      replyText('{"seen":"x"}', { usage }),
    );
    const { outcome } = await rig.run({ agent: 'thinker', message: 'What is at x?' });
    expect(outcome).toMatchObject({
      status: 'completed',
      answer: '{"seen":"x"}',
      usage: {
        inputTokens: 3_000,
        cachedTokens: 1_800,
        cacheWriteTokens: 900,
        outputTokens: 300,
      },
    });
    expect(outcome.usage.costUsd).toBeCloseTo(
      (300 * 3 + 900 * 3.75 + 1_800 * 0.3 + 300 * 15) / 1e6,
      9,
    );
    stub.assertConsumed();
    expect(stub.requests[2]?.body).toMatchObject({
      output_config: { format: { type: 'json_schema' } },
      messages: [
        { role: 'user' },
        { content: [{ thinking: 'First x.' }, { text: 'I look.' }, { type: 'tool_use' }] },
        { role: 'user', content: [{ type: 'tool_result' }] },
        { content: [{ thinking: 'Again.' }, { type: 'tool_use' }, { type: 'tool_use' }] },
        { content: [{ type: 'tool_result' }, { cache_control: { type: 'ephemeral' } }] },
      ],
    });
  } finally {
    await rig.close();
    await stub.close();
  }
});
