// A conversation that continues in two ways; see what-if.ts.
import { defineAgent, defineConfig } from 'perdure';

export default defineConfig({
  agents: [
    defineAgent({
      name: 'planner',
      instructions: 'Plan the trip with the traveler. Keep to what was decided before.',
    }),
  ],
});
