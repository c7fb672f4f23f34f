// A small local model whose server has no tool calls. Each decision is JSON under a schema, which llama.cpp
// and Ollama enforce while the model writes. The tools are in the prompt.
//   llama-server -m qwen2.5-1.5b-instruct-q4_k_m.gguf
//   OPENAI_BASE_URL=http://127.0.0.1:8080/v1 perdure run home "It is dark in the kitchen" --config examples/small-model/perdure.config.ts
import { defineAgent, defineConfig, defineTool } from 'perdure';
import { z } from 'zod';

const lamps = new Map([
  ['kitchen', false],
  ['hall', true],
]);
const room = z.enum(['kitchen', 'hall']);

const lamp = defineTool({
  name: 'lamp',
  description: 'Returns whether the lamp of a room is on.',
  input: z.object({ room }),
  effect: 'read',
  execute: async ({ room: where }) => (lamps.get(where) ? 'on' : 'off'),
});

const turnLamp = defineTool({
  name: 'turn_lamp',
  description: 'Turns the lamp of a room on or off.',
  input: z.object({ room, on: z.boolean() }),
  // Turning a lamp on twice leaves it on, so a repetition is harmless.
  effect: 'keyed',
  async execute({ room: where, on }) {
    lamps.set(where, on);
    return `the lamp in the ${where} is ${on ? 'on' : 'off'}`;
  },
});

export default defineConfig({
  agents: [
    defineAgent({
      name: 'home',
      instructions: 'You control the lamps of an apartment. Be brief.',
      model: 'small',
      decide: 'schema',
      tools: [lamp, turnLamp],
      // A small model loses track early, so it gets few steps, few attempts, and temperature 0.
      attempts: 3,
      limits: { steps: 6 },
      settings: { temperature: 0, maxOutputTokens: 200 },
    }),
  ],
  models: {
    small: {
      model: 'qwen2.5-1.5b-instruct',
      window: 8_192,
      price: { input: 0, cachedInput: 0, output: 0 },
    },
  },
});
