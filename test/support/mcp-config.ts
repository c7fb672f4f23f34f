/** The configuration of a server whose agents and graphs the MCP tests start. */
export const MCP_CONFIG = `
import { defineAgent, defineConfig, defineTool, template } from 'perdure';
import { defineGraph } from 'perdure/graphs';
import { z } from 'zod';

const chat = defineTool({
  name: 'chatter',
  description: 'writes where the protocol goes',
  effect: 'read',
  input: z.object({}),
  execute: () => {
    console.log('not the protocol');
    return 'said';
  },
});

const payout = defineGraph({
  name: 'payout',
  state: z.object({ what: z.string().default('') }),
  messageTo: 'what',
  nodes: ({ confirm }) => ({ sure: confirm({ show: () => 'Sure?' }) }),
}).wire({ start: 'sure', edges: { sure: { yes: 'end', no: 'end' } } });

const double = defineGraph({
  name: 'double',
  state: z.object({ n: z.number().default(1), twice: z.string().default('') }),
  answerFrom: 'twice',
  nodes: ({ run }) => ({ do: run({ run: (s) => ({ twice: String(2 * s.n) }) }) }),
}).wire({ start: 'do', edges: { do: { done: 'end' } } });

export default defineConfig({
  agents: [
    double,
    defineAgent({ name: 'clerk', instructions: 'x', model: 'stub', description: 'does errands', tools: [chat] }),
    defineAgent({ name: 'poet', instructions: 'y', model: 'stub' }),
    payout,
    defineAgent({ name: 'guide', instructions: template('Show {{city}}.', { args: ['city'] }), model: 'stub' }),
  ],
});
`;
