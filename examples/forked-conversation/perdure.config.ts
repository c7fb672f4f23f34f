// A conversation that goes two ways: see what-if.ts.
import { defineAgent, defineConfig } from 'perdure';

export default defineConfig({
  agents: [
    defineAgent({
      name: 'planner',
      instructions: 'Plan the journey with the traveller. Keep to what was settled before.',
    }),
  ],
});
