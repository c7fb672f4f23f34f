import { defineAgent } from 'perdure';
import { defineGraph, text } from 'perdure/graphs';
import { z } from 'zod';

export const summarizer = defineAgent({
  name: 'summarizer',
  description: 'Summarizes a text.',
  instructions: 'Summarize the text in one sentence.',
});

const result = z.object({ ok: z.boolean(), value: z.string().optional() });

/** Map and reduce: a summary of each document, three at a time, then one of all summaries. */
export const digest = defineGraph({
  name: 'digest',
  state: z.object({
    documents: z.array(z.string()),
    parts: z.array(result).default([]),
    all: z.string().default(''),
    answer: z.string().default(''),
    error: z.object({ message: z.string() }).optional(),
  }),
  answerFrom: 'answer',
  errorTo: 'error',
  nodes: ({ each, run, agent }) => ({
    map: each({
      over: (s) => s.documents,
      agent: summarizer,
      message: (_, document) => text`${document}`,
      atOnce: 3,
      save: 'parts',
    }),
    collect: run({
      run: async (s) => ({ all: s.parts.flatMap(({ value }) => value ?? []).join('\n') }),
    }),
    reduce: agent({ agent: summarizer, message: (s) => text`${s.all}`, save: 'answer' }),
    // A run that reaches `end` has completed, so the answer says what went wrong.
    explain: run({ run: async (s) => ({ answer: `There is no digest: ${s.error?.message}` }) }),
  }),
}).wire({
  start: 'map',
  edges: {
    map: 'collect',
    collect: 'reduce',
    reduce: { done: 'end', stopped: 'explain', failed: 'explain' },
    explain: 'end',
  },
});
