import { defineAgent } from 'perdure';
import { defineGraph, text } from 'perdure/graphs';
import { z } from 'zod';

export const clerk = defineAgent({
  name: 'clerk',
  description: 'Answers questions about orders.',
  instructions: 'Answer questions about orders in one sentence.',
});

/** Checks a message before any model sees it, and answers a bad one itself. */
function findFault(message: string): string | null {
  if (message.trim() === '') return 'Please write what you need.';
  if (message.length > 5_000) return 'Please keep it under 5,000 characters.';
  return /ignore (all|previous) instructions/i.test(message) ? 'I cannot help with that.' : null;
}

export const guardedDesk = defineGraph({
  name: 'guarded-desk',
  state: z.object({ message: z.string().default(''), answer: z.string().default('') }),
  messageTo: 'message',
  answerFrom: 'answer',
  perTurn: ['answer'],
  nodes: ({ route, agent }) => ({
    validate: route({
      exits: ['valid', 'invalid'],
      run: async (s, { exit }) => {
        const fault = findFault(s.message);
        return fault === null ? exit('valid') : exit('invalid', { answer: fault });
      },
    }),
    ask: agent({ agent: clerk, message: (s) => text`${s.message}`, save: 'answer' }),
  }),
}).wire({
  start: 'validate',
  edges: {
    validate: { valid: 'ask', invalid: 'end' },
    ask: { done: 'end', stopped: 'end', failed: 'end' },
  },
});
