import { defineAgent } from 'perdure';
import { cases, defineGraph, text } from 'perdure/graphs';
import { z } from 'zod';

export const supervisor = defineAgent({
  name: 'supervisor',
  description: 'Decides who handles a request.',
  instructions: 'Decide whether the request is about billing or about technical problems.',
  output: z.object({ team: z.enum(['billing', 'technical']) }),
});
export const billing = defineAgent({
  name: 'billing',
  description: 'Handles billing.',
  instructions: 'You handle questions about invoices.',
});
export const technical = defineAgent({
  name: 'technical',
  description: 'Handles technical problems.',
  instructions: 'You handle technical problems.',
});

/** A supervisor picks a specialist. The choice itself is data, so the graph shows it. */
export const triage = defineGraph({
  name: 'triage',
  state: z.object({
    request: z.string().default(''),
    pick: z.object({ team: z.string() }).optional(),
    answer: z.string().default(''),
  }),
  messageTo: 'request',
  answerFrom: 'answer',
  perTurn: ['pick', 'answer'],
  nodes: ({ agent, choose }) => ({
    supervise: agent({ agent: supervisor, message: (s) => text`${s.request}`, save: 'pick' }),
    pick: choose({ on: (s) => cases({ billing: s.pick.team.is('billing') }) }),
    billing: agent({ agent: billing, message: (s) => text`${s.request}`, save: 'answer' }),
    technical: agent({ agent: technical, message: (s) => text`${s.request}`, save: 'answer' }),
  }),
}).wire({
  start: 'supervise',
  edges: {
    supervise: { done: 'pick', stopped: 'end', failed: 'technical' },
    pick: { billing: 'billing', else: 'technical' },
    billing: { done: 'end', stopped: 'end', failed: 'end' },
    technical: { done: 'end', stopped: 'end', failed: 'end' },
  },
});
