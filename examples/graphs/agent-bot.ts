import { defineTool } from 'perdure';
import { defineGraph } from 'perdure/graphs';
import { z } from 'zod';

const today = defineTool({
  name: 'today',
  description: 'Returns the date.',
  input: z.object({}),
  effect: 'read',
  execute: async () => '2026-11-22',
});
const respond = defineTool({
  name: 'respond',
  description: 'Answers the user. Call it last.',
  input: z.object({ text: z.string() }),
  effect: 'read',
  execute: async ({ text }) => text,
});

/** The loop of an agent as a graph: decide, act, decide again, until a tool answers. */
export const agentBot = defineGraph({
  name: 'agent-bot',
  instructions: 'Find out what you need with the tools, then respond.',
  tools: [today, respond],
  limits: { steps: 10 },
  state: z.object({ answer: z.string().default('') }),
  answerFrom: 'answer',
  perTurn: ['answer'],
  nodes: ({ decide, tool }) => ({
    decide: decide({ tools: ['today', 'respond'], save: 'answer' }),
    today: tool({ tool: today }),
    respond: tool({ tool: respond, save: 'answer' }),
  }),
}).wire({
  start: 'decide',
  edges: {
    decide: { today: 'today', respond: 'respond', text: 'end' },
    today: { done: 'decide', failed: 'decide' },
    respond: { done: 'end', failed: 'decide' },
  },
});
