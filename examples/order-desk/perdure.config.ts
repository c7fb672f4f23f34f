// An order desk: reads are free, a note honors our key, a refund must never happen twice.
//   perdure run desk "Refund order 17, it arrived broken" --config examples/order-desk/perdure.config.ts
import { defineAgent, defineConfig, defineTool, ToolError } from 'perdure';
import { z } from 'zod';
import { orders } from './shop.js';

const lookUpOrder = defineTool({
  name: 'look_up_order',
  description: 'What was ordered, for how much, and whether it was paid back.',
  input: z.object({ order: z.number().int() }),
  effect: 'read',
  async execute({ order }) {
    const found = orders.find(order);
    if (found === undefined) throw new ToolError(`there is no order ${order}; ask for the number`);
    return found;
  },
});

const refund = defineTool({
  name: 'refund',
  description: 'Pays an order back. Look it up first; an order is paid back at most once.',
  input: z.object({ order: z.number().int(), euros: z.number().positive() }),
  // The bank takes no key: where the outcome is unknown, `verify` looks, and else a person decides.
  effect: 'once',
  describe: ({ order, euros }) => `refund ${euros} € to order ${order}`,
  verify: (key) => orders.refundUnder(key),
  async execute({ order, euros }, { idempotencyKey }) {
    return orders.refund(order, { euros, reference: idempotencyKey });
  },
});

export default defineConfig({
  agents: [
    defineAgent({
      name: 'desk',
      instructions: 'You run the order desk. Look an order up before you pay it back.',
      tools: [lookUpOrder, refund],
      limits: { steps: 10, costUsd: 0.5 },
    }),
  ],
});
