// Large or exact data is passed between tools by name: one tool makes a table, another works on it,
// and the result is returned whole. The model sees only names, shapes, and first lines.
//   perdure run report "Sales of November by region" --config examples/report-desk/perdure.config.ts
import { defineAgent, defineConfig, defineTool, ToolError } from 'perdure';
import { artifact, defaultTools } from 'perdure/tools';
import { z } from 'zod';

const Sale = z.object({ region: z.string(), day: z.number(), euros: z.number() });

const loadSales = defineTool({
  name: 'load_sales',
  description: 'Loads every sale of a month as a table.',
  input: z.object({ month: z.string().describe('such as 2026-11') }),
  effect: 'read',
  output: z.array(Sale),
  async execute({ month }) {
    if (!/^\d{4}-\d\d$/.test(month))
      throw new ToolError(`month: expected a month such as 2026-11, got ${month}`);
    const sales = Array.from({ length: 3_000 }, (_, n) => ({
      region: ['north', 'south', 'west'][n % 3] ?? '',
      day: 1 + (n % 30),
      euros: 10 + (n % 7),
    }));
    return artifact(sales, { name: `sales-${month}`, summary: `all sales of ${month}` });
  },
});

const sumUp = defineTool({
  name: 'sum_up',
  description: 'Sums up a table of sales by region.',
  input: z.object({ table: z.string().describe('the name of a table') }),
  effect: 'read',
  async execute({ table }, { artifacts }) {
    const sales = await artifacts.get(table, z.array(Sale));
    const sums = new Map<string, number>();
    for (const { region, euros } of sales) sums.set(region, (sums.get(region) ?? 0) + euros);
    return artifact(Object.fromEntries(sums), { summary: 'euros by region' });
  },
});

export default defineConfig({
  agents: [
    defineAgent({
      name: 'report',
      instructions: 'Make the requested table, and return it as an artifact.',
      tools: defaultTools([loadSales, sumUp]),
      toolChoice: 'required',
      limits: { steps: 8 },
    }),
  ],
});
