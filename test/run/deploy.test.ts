import { setTimeout } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { openAiModel } from '../../src/models/openai/model.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { blocked } from '../support/conversation.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let stub: Stub;
beforeEach(async () => {
  [rig, stub] = [await createRig(), await startStub()];
});
afterEach(async () => {
  await rig.close();
  await stub.close();
});

const look = (field: string, effect: 'read' | 'keyed' = 'read') =>
  defineTool({
    name: 'look',
    description: 'looks',
    input: z.object({ [field]: z.string() }),
    effect,
    execute: async () => `looked by ${field} as ${effect}`,
  });
const agent = (tools: Parameters<typeof defineAgent>[0]['tools'], instructions = 'old'): Agent =>
  defineAgent({ name: 'a', instructions, model: 'm', tools: tools ?? [] });

/**
 * Starts a run on the first deployment, holds its model, and replaces it with the second
 * deployment.
 */
async function deployMidway(first: Agent, second: Agent): Promise<WorkflowHandle> {
  const models = { m: openAiModel({ baseUrl: stub.baseUrl }) };
  stub.answer((request) =>
    request.assistantMessages === 0
      ? replyCalls([{ name: 'look', arguments: { at: 'x' } }], {
          ...(request.attempt === 1 && { holdBeforeHeaders: 'held' }),
        })
      : replyText('done'),
  );
  const old = await rig.worker([first], { models });
  const handle = await rig.start({ agent: 'a', message: 'go' });
  await stub.barrier('held').reached;
  await old.shutdown();
  await rig.worker([second], { models });
  return handle;
}

describe('a deployment during a run', () => {
  test('does not change what the run has pinned: instructions and tools as the model knows them', async () => {
    const handle = await deployMidway(agent([look('at')]), agent([look('at')], 'new'));
    const { outcome } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', toolCalls: 1 });
    const systems = stub.requests.map(({ messages }) => messages[0]?.content);
    expect(new Set(systems)).toEqual(new Set(['old']));
  });

  test('without the tool blocks the run and names the tool, and resume on a worker that has it continues', async () => {
    const handle = await deployMidway(agent([look('at')]), agent([]));
    expect(await blocked(handle)).toMatchObject({
      reason: 'tool_missing',
      message: expect.stringContaining('"look"'),
    });
    await rig.stopWorkers();
    await rig.worker([agent([look('at')])], {
      models: { m: openAiModel({ baseUrl: stub.baseUrl }) },
    });
    await handle.executeUpdate('resume');
    const { outcome } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', toolCalls: 1 });
  });

  test('with other timeouts, attempts, and endings does not change those that the run has pinned', async () => {
    let executions = 0;
    const slow = (rest: Partial<Parameters<typeof defineTool>[0]>) =>
      defineTool({
        name: 'look',
        description: 'looks',
        input: z.object({ at: z.string() }),
        effect: 'read',
        retry: { attempts: 1 },
        ...rest,
        async execute() {
          executions += 1;
          await setTimeout(100);
          throw new Error('broken');
        },
      });
    const now = slow({ timeout: 10, ends: true, repeat: 'allow', retry: { attempts: 5 } });
    const handle = await deployMidway(agent([slow({})]), agent([now]));
    const { outcome, projection } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', reason: 'answer', toolCalls: 1 });
    // One attempt, not five; it failed and did not time out.
    expect(executions).toBe(1);
    expect(projection.messages.find(({ role }) => role === 'tool')?.text).toContain('broken');
  });

  test.each([
    ['other arguments', look('where'), 'fit tool "look" as of the start'],
    ['another effect', look('at', 'keyed'), 'was "read" when the run began and is "keyed" now'],
  ])('with a tool of %s blocks the run', async (_what, changed, message) => {
    const handle = await deployMidway(agent([look('at')]), agent([changed]));
    expect(await blocked(handle)).toMatchObject({
      reason: 'tool_changed',
      message: expect.stringContaining(message),
    });
    await handle.cancel();
    expect((await rig.end(handle)).outcome.status).toBe('cancelled');
  });
});
