// Any provider of the AI SDK (version 6): pass its model to `aiSdkModel`. This one uses Vercel's
// gateway.
//   npm install ai@6
//   AI_GATEWAY_API_KEY=… perdure run clerk "What is on shelf 4?" --config examples/ai-sdk/perdure.config.ts
import { defineAgent, defineConfig, defineTool } from 'perdure';
import { gateway } from 'ai';
import { z } from 'zod';
import { aiSdkModel } from './ai-sdk-model.js';

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
