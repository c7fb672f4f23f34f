import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { replyCall, replyCalls, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createMemoryRig();
});
afterAll(async () => await rig.close());

const weather = defineTool({
  name: 'weather',
  description: 'the weather of a city',
  input: z.object({ city: z.string() }),
  effect: 'read',
  execute: async ({ city }) => `sunny in ${city}`,
});

describe('a run', () => {
  test('calls tools and ends with the answer', async () => {
    const model = scriptedModel([
      replyCalls([
        { name: 'weather', arguments: { city: 'Rome' } },
        { name: 'weather', arguments: { city: 'Oslo' } },
      ]),
      replyCall('weather', { city: 'Paris' }),
      replyText('all sunny'),
    ]);
    await rig.worker(
      [defineAgent({ name: 'a', instructions: 'hi', model: 'm', tools: [weather] })],
      {
        models: { m: model },
      },
    );
    const { outcome, projection, history } = await rig.run({ agent: 'a', message: 'weather?' });
    expect(outcome).toMatchObject({
      status: 'completed',
      reason: 'answer',
      answer: 'all sunny',
      steps: 3,
      toolCalls: 3,
    });
    expect(projection.state?.transcript.messages.map(({ role, text }) => [role, text])).toEqual([
      ['user', 'weather?'],
      ['assistant', ''],
      ['tool', 'sunny in Rome'],
      ['tool', 'sunny in Oslo'],
      ['assistant', ''],
      ['tool', 'sunny in Paris'],
      ['assistant', 'all sunny'],
    ]);
    expect(history.events?.length).toBeGreaterThan(20);
  });

  test("reports its current activity to Temporal's page, on request", async () => {
    const model = scriptedModel([replyCall('weather', { city: 'Rome' }), replyText('sunny')]);
    const agent = defineAgent({ name: 'b', instructions: 'hi', model: 'm', tools: [weather] });
    const own = await createMemoryRig();
    await own.worker([agent], { models: { m: model } });
    const { handle } = await own.run({ agent: 'b', message: 'weather?', tags: ['x'] });
    const { currentDetails } = await handle.query<{ currentDetails: string }>(
      '__temporal_workflow_metadata',
    );
    expect(currentDetails).toContain('completed \\(answer');
    expect(currentDetails).toContain('weather Rome');
    const { memo, searchAttributes } = await handle.describe();
    expect(memo).toEqual({ tags: ['x'], turn: 1, status: 'completed', reason: 'answer' });
    expect(searchAttributes).toMatchObject({ AgentName: ['b'], AgentStatus: ['done'] });
    await own.close();
  });
});
