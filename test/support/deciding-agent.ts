import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';

/** A graph whose node asks its model five questions in sequence. */
export function generatingGraph(): Agent {
  return defineGraph({
    name: 'generating',
    state: z.object({ text: z.string(), answer: z.string().optional() }),
    messageTo: 'text',
    answerFrom: 'answer',
    nodes: ({ run }) => ({
      ask: run({
        run: async (_, { generate }) => {
          const answers: string[] = [];
          for (const number of [1, 2, 3, 4, 5]) {
            answers.push(await generate({ model: 'stub', message: `question ${number}` }));
          }
          return { answer: answers.join(' ') };
        },
      }),
    }),
  }).wire({ start: 'ask', edges: { ask: 'end' } });
}

/** An agent whose decision asks its model five questions in sequence. */
export function decidingAgent(): Agent {
  return defineAgent({
    name: 'deciding',
    instructions: 'ask',
    model: 'stub',
    decide: async ({ model }) => {
      const answers: string[] = [];
      for (const number of [1, 2, 3, 4, 5]) {
        const { text } = await model.call({ instructions: `question ${number}` });
        answers.push(text);
      }
      return { answer: answers.join(' ') };
    },
  });
}
