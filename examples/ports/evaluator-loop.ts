import { defineAgent } from 'perdure';
import { cases, defineGraph, text } from 'perdure/graphs';
import { z } from 'zod';

const verdict = z.object({
  funny: z.boolean(),
  feedback: z.string().describe('What to do better, if the joke is not funny.'),
});

const writer = defineAgent({ name: 'writer', instructions: 'Write a short joke, nothing else.' });

/** Writes a joke, judges it, and writes it again with the feedback until it is funny. */
export const jokes = defineGraph({
  name: 'jokes',
  instructions: 'You judge jokes strictly.',
  state: z.object({
    topic: z.string().default(''),
    joke: z.string().default(''),
    verdict: verdict.default({ funny: false, feedback: 'none yet' }),
  }),
  messageTo: 'topic',
  answerFrom: 'joke',
  nodes: ({ agent, decide, choose }) => ({
    write: agent({
      agent: writer,
      message: (s) => text`Write a joke about ${s.topic}. Feedback: ${s.verdict.feedback}`,
      save: 'joke',
    }),
    judge: decide({
      message: (s) => text`Judge this joke: ${s.joke}`,
      output: verdict,
      save: 'verdict',
    }),
    isFunny: choose({ on: (s) => cases({ funny: s.verdict.funny.is(true) }) }),
  }),
}).wire({
  start: 'write',
  edges: {
    write: { done: 'judge', stopped: 'end', failed: 'end' },
    judge: { done: 'isFunny' },
    isFunny: { funny: 'end', else: 'write' },
  },
});
