// An extractor: the answer is a valid invoice, or the run fails. If the schema or the sum does not
// fit, the answer goes back to the model with the reason. Such attempts are paid for, and later
// prompts omit them.
//   perdure run invoice "2 kettles at 40 € and a cable at 9 €: 89 €, due 2026-12-01" --config examples/extractor/perdure.config.ts
import { defineAgent, defineConfig } from 'perdure';
import { z } from 'zod';

const invoice = z
  .object({
    lines: z.array(
      z.object({ item: z.string(), count: z.number().int().min(1), euros: z.number() }),
    ),
    totalEuros: z.number().describe('as stated on the invoice'),
    due: z.iso.date().optional(),
  })
  // This check runs on the worker when the reply is recorded. A JSON schema cannot express it.
  .superRefine(({ lines, totalEuros }, check) => {
    const sum = lines.reduce((total, { count, euros }) => total + count * euros, 0);
    if (Math.abs(sum - totalEuros) < 0.005) return;
    const message = `expected ${sum} € as the sum of the lines`;
    check.addIssue({ code: 'custom', path: ['totalEuros'], message });
  });

export default defineConfig({
  agents: [
    defineAgent({
      name: 'invoice',
      instructions: 'Read the invoice. `euros` is the price of one item.',
      output: invoice,
      attempts: 3,
      settings: { temperature: 0 },
    }),
  ],
});
