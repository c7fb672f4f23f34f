// A refund desk: up to 50 € goes out at once; more needs approval by someone other than the
// requester.
//   perdure run desk "Refund order 17, it arrived broken" --config examples/refund-desk/perdure.config.ts
import { defineAgent, defineConfig, defineTool } from 'perdure';
import { z } from 'zod';
import { bank } from './bank.js';

const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  input: z.object({ order: z.number().int(), euros: z.number().positive() }),
  // The bank refuses a second refund under the same reference.
  effect: 'keyed',
  describe: ({ order, euros }) => `refund ${euros} € to order ${order}`,
  execute: ({ order, euros }, { idempotencyKey }) => bank.refund(idempotencyKey, { order, euros }),
});

export default defineConfig({
  agents: [
    defineAgent({
      name: 'desk',
      instructions: 'You refund orders. If a person denies a refund, explain why to the customer.',
      tools: [refund],
      limits: { steps: 10 },
    }),
  ],
  rules: [
    {
      tool: 'refund',
      where: { op: 'over', path: 'euros', value: 50 },
      then: 'ask',
      deciders: 'not_requester',
    },
    { tool: 'refund', where: { op: 'over', path: 'euros', value: 1_000 }, then: 'deny' },
  ],
});
