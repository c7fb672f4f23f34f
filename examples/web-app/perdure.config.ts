// The agent of a web chat. See README.md.
import { defineAgent, defineConfig } from 'perdure';

export default defineConfig({
  agents: [
    defineAgent({
      name: 'guide',
      instructions: 'You are the guide of a small museum. Answer briefly and warmly.',
    }),
  ],
});
