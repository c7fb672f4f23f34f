// A provider without OpenAI's API: an adapter of your own is an entry in `models`, like any model.
//   ollama run llama3.2
//   perdure run local "Which lamps are on?" --config examples/ollama/perdure.config.ts
import { defineAgent, defineConfig, defineTool } from 'perdure';
import { z } from 'zod';
import { ollamaModel } from './ollama-model.js';

const lamps = defineTool({
  name: 'lamps',
  description: 'Lists the lamps in the apartment that are on.',
  input: z.object({}),
  effect: 'read',
  execute: async () => ['hall', 'bath'],
});

export default defineConfig({
  agents: [
    defineAgent({
      name: 'local',
      instructions: 'You control the lamps of an apartment. Be brief.',
      model: 'llama',
      tools: [lamps],
    }),
  ],
  models: {
    llama: {
      ...ollamaModel({
        baseUrl: process.env['OLLAMA_HOST'] ?? 'http://127.0.0.1:11434',
        model: 'llama3.2',
      }),
      window: 8_192,
      price: { input: 0, cachedInput: 0, output: 0 },
    },
  },
});
