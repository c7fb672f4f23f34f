// An extractor: the answer is an invoice or none. What the schema or the sum refuses goes back to the
// model with the reason; those attempts are paid for, but no part of the transcript.
//   perdure run invoice "2 kettles at 40 € and a cable at 9 €: 89 €, due 2026-12-01" --config examples/extractor/perdure.config.ts
import { defineAgent, defineConfig } from 'perdure';
import { z } from 'zod';

const invoice = z
  .object({
    lines: z.array(
      z.object({ item: z.string(), count: z.number().int().min(1), euros: z.number() }),
    ),
    totalEuros: z.number().describe('as it stands on the invoice'),
    due: z.iso.date().optional(),
  })
  // Runs on the worker, beside the reply: no JSON schema can say it.
  .superRefine(({ lines, totalEuros }, check) => {
    const sum = lines.reduce((total, { count, euros }) => total + count * euros, 0);
    if (Math.abs(sum - totalEuros) < 0.005) return;
    const message = `must be the sum of the lines, ${sum} €; read each line again`;
    check.addIssue({ code: 'custom', path: ['totalEuros'], message });
  });

export default defineConfig({
  agents: [
    defineAgent({
      name: 'invoice',
      instructions: 'Read the invoice. `euros` is the price of one piece.',
      output: invoice,
      attempts: 3,
      settings: { temperature: 0 },
    }),
  ],
});
