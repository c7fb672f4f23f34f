import { z } from 'zod';
import type { Agent, NodeFunction } from '../../src/agents/agent.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import type { Tool } from '../../src/tools/tool.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { graphAgent, node, ROUTE, RUN } from './graph-agent.js';

/** Tells the ledger that a tool or a node is executed. */
type Tell = (
  tool: string,
  context: { readonly idempotencyKey: string; readonly run: { readonly id: string } },
) => Promise<void>;

/** Two graphs whose nodes, one of every kind that executes something, tell the ledger. */
export function ledgerGraphs(url: string): readonly Agent[] {
  const tell: Tell = async (tool, { idempotencyKey: key, run }) => {
    const body = JSON.stringify({ tool, key, input: {}, run: run.id });
    await fetch(url, { method: 'POST', body });
  };
  const note: NodeFunction = async ({ item }, context) => {
    await tell('node', context);
    return { patch: {}, value: item ?? null };
  };
  const pay = defineTool({
    name: 'pay',
    description: 'pays',
    input: z.object({}),
    effect: 'keyed',
    execute: async (_, context) => await tell('pay', context),
  });
  const walker = graphAgent(
    {
      start: 'first',
      nodes: [
        node('first', RUN, { done: 'pick' }),
        node('pick', ROUTE, { on: 'all' }),
        node(
          'all',
          { kind: 'each', over: [1, 2, 3], atOnce: 2, body: RUN, save: 'results' },
          { done: 'below' },
        ),
        node(
          'below',
          { kind: 'graph', graph: 'below', input: {}, save: 'n' },
          { done: 'pay', stopped: 'end', failed: 'end' },
        ),
        node('pay', { kind: 'tool', tool: 'pay', arguments: {} }, { done: 'last' }),
        node('last', RUN, { done: 'end' }),
      ],
    },
    {
      first: note,
      pick: async (given, context) => ({ ...(await note(given, context)), exit: 'on' }),
      all: note,
      last: note,
    },
    { name: 'walker', tools: [pay] },
  );
  const below = graphAgent(
    { start: 'inner', nodes: [node('inner', RUN, { done: 'end' })] },
    { inner: note },
    { name: 'below' },
  );
  return [walker, below, planner(tell), decider(pay)];
}

/** Decides by a model, executes the decision, and calls an agent. */
function decider(pay: Tool): Agent {
  const clerk = defineAgent({ name: 'clerk-below', instructions: 'x', model: 'stub' });
  return defineGraph({
    name: 'decider',
    instructions: 'Decide.',
    model: 'stub',
    tools: [pay],
    state: z.object({ answer: z.string().optional() }),
    answerFrom: 'answer',
    nodes: ({ decide, tool, agent }) => ({
      decide: decide({ tools: ['pay'] }),
      pay: tool({ tool: pay }),
      ask: agent({ agent: clerk, message: () => 'Report.', save: 'answer' }),
    }),
  }).wire({
    start: 'decide',
    edges: {
      decide: { pay: 'pay', text: 'end' },
      pay: 'ask',
      ask: { done: 'end', stopped: 'end', failed: 'end' },
    },
  });
}

/** Plans calls that tell the ledger; `wipe` needs approval. */
function planner(tell: Tell): Agent {
  const tool = (name: string) =>
    defineTool({
      name,
      description: name,
      input: z.object({ what: z.string() }),
      effect: 'keyed',
      execute: async ({ what }, context) => {
        await tell(`${name} ${what}`, context);
        return { id: what };
      },
    });
  return planAndExecute({
    name: 'planner',
    instructions: 'Plan.',
    model: 'stub',
    tools: [tool('note'), tool('wipe')],
    rules: [{ tool: 'wipe', then: 'ask' }],
  });
}
