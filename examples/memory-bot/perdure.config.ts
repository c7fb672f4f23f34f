// A bot with memory: no tools, one open run per conversation. The run is the memory, so it survives
// restarts and lasts for months. A conversation that is too long for the model is summarized.
//   perdure run bot "I am Ann and I collect stamps" --open --id ann --config examples/memory-bot/perdure.config.ts
//   perdure send ann "What do I collect?" --config examples/memory-bot/perdure.config.ts
import { defineAgent, defineConfig } from 'perdure';

export default defineConfig({
  agents: [
    defineAgent({
      name: 'bot',
      instructions: 'You are a friendly companion. Use what the person told you before.',
      settings: { temperature: 0.7, maxOutputTokens: 500 },
      limits: { run: { tokens: 2_000_000 } },
    }),
  ],
});
