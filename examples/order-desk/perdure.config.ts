// An order desk: looking up changes nothing, and a refund must never happen twice.
//   perdure run desk "Refund order 17, it arrived broken" --config examples/order-desk/perdure.config.ts
import { defineAgent, defineConfig, defineTool, ToolError } from 'perdure';
import { z } from 'zod';
import { orders } from './shop.js';

const lookUpOrder = defineTool({
  name: 'look_up_order',
  description: 'Returns what was ordered, the price, and whether it was refunded.',
  input: z.object({ order: z.number().int() }),
  effect: 'read',
  async execute({ order }) {
    const found = orders.find(order);
    if (found === undefined)
      throw new ToolError(`order: expected an existing order, got ${order}; ask for the number`);
    return found;
  },
});

const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order, at most once. Look the order up first.',
  input: z.object({ order: z.number().int(), euros: z.number().positive() }),
  // If the outcome is unknown, `verify` asks the bank, which from then on refuses anything issued
  // before.
  effect: 'once',
  describe: ({ order, euros }) => `refund ${euros} € to order ${order}`,
  verify: (key, { scheduledAt }) => orders.fenceRefund(key, scheduledAt),
  async execute({ order, euros }, { idempotencyKey, call }) {
    return orders.refund(order, { euros, reference: idempotencyKey, issued: call.scheduledAt });
  },
});

export default defineConfig({
  agents: [
    defineAgent({
      name: 'desk',
      instructions: 'You run the order desk. Look an order up before you refund it.',
      tools: [lookUpOrder, refund],
      limits: { steps: 10, costUsd: 0.5 },
    }),
  ],
});
