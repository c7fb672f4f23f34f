// A companion that remembers people from one conversation to the next, in a SQLite file.
//   MEMORY_FILE=memory.sqlite perdure run companion "I am Ann and I collect stamps" --context '{"person":"ann"}' --config examples/long-memory/perdure.config.ts
//   MEMORY_FILE=memory.sqlite perdure run companion "What stamps do I collect?" --context '{"person":"ann"}' --config examples/long-memory/perdure.config.ts
import { defineAgent, defineConfig } from 'perdure';
import { openMemory } from './sqlite-memory.js';

export default defineConfig({
  agents: [
    defineAgent({
      name: 'companion',
      instructions: 'You are a friendly companion. Use what the person told you before.',
      ...(await openMemory(process.env['MEMORY_FILE'])),
    }),
  ],
});
