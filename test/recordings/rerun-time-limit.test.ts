import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { rerun } from '../../src/recordings/rerun.js';
import { decision, replyText } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { playAndRecord, useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

const PLAN = JSON.stringify({
  actions: [
    { id: 'a1', tool: 'load', arguments: {} },
    { id: 'a2', tool: 'slow', arguments: {}, after: ['a1'] },
    { id: 'a3', tool: 'load', arguments: {}, after: ['a2'] },
  ],
});

test.for(['read', 'keyed', 'once'] as const)(
  'a plan whose time was up during an action, and was raised, is the same: %s',
  async (effect) => {
    let calls = 0;
    const load = defineTool({
      name: 'load',
      description: 'Loads.',
      effect: 'read',
      input: z.object({}),
      execute: () => 'rows',
    });
    /** Ends only when it is canceled, but the second time. */
    const slow = defineTool({
      name: 'slow',
      description: 'Works.',
      effect,
      input: z.object({}),
      timeout: '1 hour',
      execute: async (_, { signal }) => {
        calls += 1;
        if (calls > 1) return 'worked';
        return await new Promise<string>((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        });
      },
    });
    const agent = planAndExecute({
      name: 'planner',
      instructions: 'Plan.',
      tools: [load, slow],
      onLimit: 'ask',
      limits: { wall: '300ms' },
    });
    const recording = await playAndRecord(agent, {
      message: 'Go',
      model: [replyText(PLAN), replyText('Done.')],
      on: { request: { limit: decision({ as: 'raise', arguments: { wallMs: 600_000 } }) } },
    });
    expect(recording.runs[0]?.outcome).toMatchObject({ status: 'completed' });
    const { divergence } = await rerun(recording, { agent });
    expect(divergence?.text).toBeUndefined();
  },
);
