import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';

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
