import { defineAgent, defineConfig, defineTool } from 'perdure';
import { z } from 'zod';

const weather = defineTool({
  name: 'weather',
  description: 'Returns the weather at a place.',
  effect: 'read',
  input: z.object({ place: z.string() }),
  execute: async ({ place }) => ({ place, celsius: 21 }),
});

export const forecaster = defineAgent({
  name: 'forecaster',
  instructions: 'Answer questions about the weather.',
  tools: [weather],
  limits: { steps: 5 },
});

export default defineConfig({ agents: [forecaster] });
// npx perdure run forecaster 'What is the weather in Rome?'
