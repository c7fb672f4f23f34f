import { defineAgent } from 'perdure';
import { defineGraph, text } from 'perdure/graphs';
import { z } from 'zod';

const HANDBOOK = [
  'Refunds are paid within five days.',
  'Orders are sent on weekdays.',
  'The shop is closed on Sundays.',
];

export const answerer = defineAgent({
  name: 'answerer',
  description: 'Answers from given passages.',
  instructions: 'Answer from the passages only. If they do not say, say so.',
});

/** Finds passages first, and calls a model only if there are any. */
export const lookup = defineGraph({
  name: 'lookup',
  state: z.object({
    question: z.string().default(''),
    passages: z.array(z.string()).default([]),
    answer: z.string().default('The handbook does not say.'),
  }),
  messageTo: 'question',
  answerFrom: 'answer',
  perTurn: ['passages', 'answer'],
  nodes: ({ route, agent }) => ({
    find: route({
      exits: ['found', 'nothing'],
      run: async (s, { exit }) => {
        const words = s.question.toLowerCase().match(/\p{L}{4,}/gu) ?? [];
        const passages = HANDBOOK.filter((one) => words.some((w) => one.toLowerCase().includes(w)));
        return passages.length === 0 ? exit('nothing') : exit('found', { passages });
      },
    }),
    answer: agent({
      agent: answerer,
      message: (s) => text`Question: ${s.question}\nPassages: ${s.passages}`,
      save: 'answer',
    }),
  }),
}).wire({
  start: 'find',
  edges: {
    find: { found: 'answer', nothing: 'end' },
    answer: { done: 'end', stopped: 'end', failed: 'end' },
  },
});
