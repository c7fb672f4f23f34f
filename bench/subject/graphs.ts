import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import type { Model } from '../../src/models/model.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { WIDE } from '../bare/contract.js';

/** Three functions in a row that cost nothing. */
const three = defineGraph({
  name: 'three',
  state: z.object({ n: z.number().default(0) }),
  nodes: ({ run }) => ({
    a: run({ run: async ({ n }) => ({ n: n + 1 }) }),
    b: run({ run: async ({ n }) => ({ n: n + 1 }) }),
    c: run({ run: async ({ n }) => ({ n: n + 1 }) }),
  }),
}).wire({ start: 'a', edges: { a: 'b', b: 'c', c: 'end' } });

const act = defineTool({
  name: 'act',
  description: 'does an action',
  input: z.object({ index: z.int() }),
  effect: 'keyed',
  execute: async ({ index }) => index,
});

const wide = planAndExecute({
  name: 'wide',
  instructions: 'Plan.',
  model: 'planning',
  tools: [act],
  atOnce: WIDE.atOnce,
  limits: { toolCalls: null },
});

/** Plans the wide plan, and then reports that it is done. */
export const planningModel: Model = {
  call: async ({ messages }) => {
    const isPlanned = messages.some(({ role }) => role === 'assistant');
    return {
      text: isPlanned ? 'Done.' : WIDE_PLAN,
      calls: [],
      finish: 'stop',
      usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0 },
    };
  },
};

const WIDE_PLAN = JSON.stringify({
  actions: Array.from({ length: WIDE.actions }, (_, index) => ({
    id: `a${index}`,
    tool: 'act',
    arguments: { index },
    ...(index >= WIDE.width && { after: [`a${index - WIDE.width}`] }),
  })),
});

export const benchGraphs: readonly Agent[] = [three, wide];
