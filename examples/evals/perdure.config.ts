import { defineAgent, defineConfig, defineTool } from 'perdure';
import { z } from 'zod';

const orders: Readonly<Record<number, { readonly euros: number; readonly state: string }>> = {
  17: { euros: 40, state: 'lost' },
  18: { euros: 900, state: 'delivered' },
};

const findOrder = defineTool({
  name: 'find_order',
  description: 'Returns the price and the state of an order.',
  input: z.object({ order: z.int() }),
  effect: 'read',
  execute: ({ order }) => orders[order] ?? 'there is no such order',
});

const refund = defineTool({
  name: 'refund',
  description: 'Pays back an order that was lost.',
  input: z.object({ order: z.int(), euros: z.number() }),
  effect: 'once',
  execute: ({ order, euros }) => `refunded ${euros} € for order ${order}`,
});

export const desk = defineAgent({
  name: 'desk',
  instructions: 'You are the refund desk. Look the order up. Refund only what was lost. Be brief.',
  tools: [findOrder, refund],
});

export default defineConfig({ agents: [desk] });
