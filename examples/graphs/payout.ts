import { defineTool } from 'perdure';
import { defineGraph, text } from 'perdure/graphs';
import { z } from 'zod';

const pay = defineTool({
  name: 'pay',
  description: 'Pays an amount out.',
  input: z.object({ to: z.string(), euros: z.number().positive() }),
  // Your bank has to refuse a second payment under the same key.
  effect: 'keyed',
  describe: ({ to, euros }) => `pay ${euros} € to ${to}`,
  execute: async ({ to, euros }, { idempotencyKey }) =>
    `paid ${euros} € to ${to} (${idempotencyKey.slice(0, 8)})`,
});

/** Two people: the requester confirms the amount, and another person approves the payment. */
export const payout = defineGraph({
  name: 'payout',
  tools: [pay],
  rules: [{ tool: 'pay', then: 'ask', deciders: 'not_requester' }],
  state: z.object({
    to: z.string(),
    euros: z.number(),
    receipt: z.string().default('nothing was paid'),
  }),
  answerFrom: 'receipt',
  nodes: ({ confirm, tool }) => ({
    check: confirm({ show: (s) => text`Pay ${s.euros} € to ${s.to}?`, expires: '2 days' }),
    pay: tool({ tool: pay, arguments: (s) => ({ to: s.to, euros: s.euros }), save: 'receipt' }),
  }),
}).wire({
  start: 'check',
  edges: {
    check: { yes: 'pay', no: 'end', expired: 'end' },
    pay: { done: 'end', failed: 'end' },
  },
});
