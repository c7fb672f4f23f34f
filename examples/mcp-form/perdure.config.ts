import { defineAgent, defineConfig, mcpServer } from 'perdure';

// perdure run traveler 'travel__book {"city":"Oslo"}'
// perdure answer RUN r1 --result '{"seats": 2, "confirm": true}' --digest DIGEST
export const traveler = defineAgent({
  name: 'traveler',
  description: 'Books trains.',
  instructions: 'You book trains.',
  model: process.env['PERDURE_MODEL'] ?? 'demo',
  mcp: [
    mcpServer({
      name: 'travel',
      transport: 'stdio',
      command: 'node',
      args: ['server.js'],
      cwd: import.meta.dirname,
      protocol: '2026-07-28', // the version in which a server may ask
    }),
  ],
});

export default defineConfig({ agents: [traveler] });
