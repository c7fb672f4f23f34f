import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Rule } from '../../src/core/definition/rules.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Desk } from './requests.js';

/** A tool that notes at the desk whom it pays, and an agent that asks before it pays. */
export function createPayer(desk: () => Desk) {
  const pay = defineTool({
    name: 'pay',
    description: 'pays',
    input: z.object({ to: z.string() }),
    effect: 'keyed',
    execute: async ({ to }) => {
      desk().did(`pay ${to}`);
      return 'paid';
    },
  });
  const payer = (expires?: Rule['expires']): Agent =>
    defineAgent({
      name: expires === undefined ? 'payer' : 'hasty',
      instructions: 'x',
      model: 'script',
      tools: [pay],
      rules: [{ tool: 'pay', then: 'ask', ...(expires !== undefined && { expires }) }],
    });
  return { pay, payer };
}
