// Any provider of the AI SDK (versions 5 to 7): pass its model to `aiSdkModel`. This one uses
// Vercel's gateway.
//   npm install ai@6
//   AI_GATEWAY_API_KEY=… perdure run clerk "What is on shelf 4?" --config examples/ai-sdk/perdure.config.ts
import { defineAgent, defineConfig, defineTool } from 'perdure';
import { aiSdkModel } from 'perdure/ai-sdk';
import { gateway } from 'ai';
import { z } from 'zod';

const shelf = defineTool({
  name: 'shelf',
  description: 'Lists the parts on a shelf of the warehouse.',
  input: z.object({ number: z.number().int() }),
  effect: 'read',
  execute: async ({ number }) => (number === 4 ? ['bolts', 'nuts'] : []),
});

export default defineConfig({
  agents: [
    defineAgent({
      name: 'clerk',
      instructions: 'You know the warehouse. Be brief.',
      model: 'mistral',
      tools: [shelf],
    }),
  ],
  models: { mistral: { ...aiSdkModel(gateway('mistral/mistral-medium')), window: 128_000 } },
});
