// A nightly report: a schedule starts a run, whose agent calls another agent for each source.
//   perdure worker --config examples/nightly-report/perdure.config.ts &
//   node --import tsx examples/nightly-report/schedule.ts
//   perdure schedule trigger nightly-report && perdure list
import { defineAgent, defineConfig, defineTool } from 'perdure';
import { z } from 'zod';

const readLog = defineTool({
  name: 'read_log',
  description: 'Returns the errors that a service has logged since yesterday.',
  input: z.object({ service: z.enum(['shop', 'mail']) }),
  effect: 'read',
  execute: async ({ service }) => (service === 'shop' ? ['timeout of the bank, 3 times'] : []),
});

const reader = defineAgent({
  name: 'reader',
  description: 'Reads the log of one service, shop or mail, and says in a sentence what matters.',
  instructions:
    'Read the log of the service that you are asked about. Say what matters in a sentence.',
  tools: [readLog],
  limits: { steps: 4 },
});

export default defineConfig({
  agents: [
    reader,
    defineAgent({
      name: 'reporter',
      instructions:
        'Ask about each service, shop and mail, then write a report of at most five lines.',
      agents: [reader],
      limits: { steps: 6, tokens: 50_000 },
    }),
  ],
});
