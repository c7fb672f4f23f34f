import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { agentProblem } from '../../src/client/fork-run.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { template } from '../../src/prompts/template.js';

const graph = defineGraph({
  name: 'mail',
  state: z.object({
    customer: z.string(),
    orders: z.array(z.object({ id: z.number() })).default([]),
    slow: z
      .string()
      .refine(async (text) => text !== '')
      .optional(),
  }),
  nodes: ({ run }) => ({ load: run({ run: async () => ({}) }) }),
}).wire({ start: 'load', edges: { load: 'end' } });
const writer = defineAgent({
  name: 'writer',
  instructions: template('Write about {{topic}} for {{years}}.', {
    args: z.object({ topic: z.string(), years: z.number().default(3) }),
  }),
  limits: { steps: 5, run: { tokens: 900 } },
  prompts: {
    short: { text: template('Sum up {{text}}.', { args: ['text'] }) },
    plain: { text: 'Sum up.' },
  },
});

test.each([
  [{ agent: 'mail', input: { customer: 'Ann', orders: [{ id: 1 }], slow: 'x' } }, null],
  [
    { agent: 'mail', input: { custmer: 'Ann' } },
    'input: expected a field of the state of graph "mail", got "custmer" (nearest: customer); correct the name',
  ],
  [{ agent: 'mail', input: { customer: 7 } }, 'input.customer: expected string, got 7; '],
  [
    { agent: 'mail', input: { customer: 'Ann', orders: [{ id: '1' }] } },
    'input.orders[0].id: expected number, got "1"; ',
  ],
  [{ agent: 'writer', message: 'x', args: { topic: 'tea' } }, null],
  [{ agent: 'writer', message: 'x', args: { topci: 'tea' } }, '(nearest: topic); correct the name'],
  [
    { agent: 'writer', message: 'x', args: { need: 'tea' } },
    'got "need" (fields: years, topic); correct the name',
  ],
  [
    { agent: 'writer', message: 'x', args: { topic: 'tea', years: 'x' } },
    'args.years: expected number, got "x"; the template of agent "writer" has this type',
  ],
  [
    { agent: 'writer', message: 'x', args: { years: 2 } },
    'args.topic: missing; the template of agent "writer" takes topic, years',
  ],
  [
    {
      agent: 'writer',
      message: 'x',
      args: { topic: 'tea' },
      limits: { steps: 5, wall: 3_600_000 },
    },
    null,
  ],
  [
    { agent: 'writer', message: 'x', args: { topic: 'tea' }, limits: { steps: 6 } },
    "limits.steps: expected at most the agent's 5, got 6; a run may only lower it",
  ],
  [
    { agent: 'writer', message: 'x', args: { topic: 'tea' }, limits: { run: { tokens: null } } },
    "limits.run.tokens: expected at most the agent's 900, got null (none); a run may only lower it",
  ],
  [
    { agent: 'writer', message: 'x' },
    'args.topic: missing; the template of agent "writer" takes topic, years',
  ],
  [{ agent: 'writer', message: 'x', args: null }, null],
  [{ agent: 'mail', input: { customer: 'Ann' }, args: {} }, null],
  [
    { agent: 'writer', args: null, prompt: 'short', promptArgs: { txet: 'a' } },
    'promptArgs: expected a field of the template of prompt "short", got "txet" (nearest: text); correct the name',
  ],
  [{ agent: 'writer', args: null, prompt: 'short', promptArgs: {} }, 'promptArgs.text: missing; '],
  [{ agent: 'writer', args: null, prompt: 'short' }, 'promptArgs.text: missing; '],
  [{ agent: 'writer', args: null, prompt: 'plain' }, null],
  [
    { agent: 'writer', args: null, prompt: 'plain', promptArgs: { text: 'a' } },
    'promptArgs: expected none for prompt "plain" of agent "writer", whose text is not a template; remove them',
  ],
])('a start that an agent cannot take is named before it: %j', (given, problem) => {
  const found = agentProblem([graph, writer], given);
  if (problem === null) expect(found).toBeNull();
  else expect(found).toContain(problem);
});
