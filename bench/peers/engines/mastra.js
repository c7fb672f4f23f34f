// A durable agent of Mastra (beta), whose running snapshots are in PostgreSQL, so that it can recover.
import { createOpenAI } from '@ai-sdk/openai';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { createDurableAgent } from '@mastra/core/agent/durable';
import { createTool } from '@mastra/core/tools';
import { PostgresStore } from '@mastra/pg';
import { z } from 'zod';
import { INSTRUCTIONS, MAX_STEPS, TOOL } from '../settings.js';
import { serve, work } from './process.js';

const { DATABASE_URL: connectionString, OPENAI_BASE_URL: baseURL } = process.env;
const tools = {
  [TOOL.name]: createTool({
    id: TOOL.name,
    description: TOOL.description,
    inputSchema: z.object({
      name: z.string(),
      step: z.number().int(),
      part: z.number().int(),
      bytes: z.number().int(),
    }),
    execute: (input) => work(input),
  }),
};
const inner = new Agent({
  id: 'bench',
  name: 'bench',
  instructions: INSTRUCTIONS,
  model: createOpenAI({ baseURL, apiKey: 'none' }).chat('stub'),
  tools,
});
const agent = createDurableAgent({ agent: inner, maxSteps: MAX_STEPS });
const mastra = new Mastra({
  agents: { bench: agent },
  storage: new PostgresStore({ id: 'bench', connectionString }),
  recovery: { durableAgents: 'auto' },
  logger: false,
});
await mastra.getStorage().init();

serve({
  run: async (runId, message) => {
    const { output, cleanup } = await agent.stream(message, { runId, maxSteps: MAX_STEPS });
    await output.text;
    cleanup();
  },
  // As its deployer does on boot. It says how many runs it could not recover.
  recover: async () => {
    const { failed } = await mastra.recoverAllDurableAgents();
    if (failed > 0) throw new Error(`${failed} runs could not be recovered`);
  },
});
