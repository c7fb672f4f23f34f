import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Effect } from '../../src/core/definition/tool-definition.js';
import type { Tool } from '../../src/tools/tool.js';
import { resultOf } from '../conversation.js';

export const INSTRUCTIONS = 'Do the steps.';
const NO_LIMITS = { steps: null, toolCalls: null };

const input = z.object({ name: z.string(), step: z.int(), part: z.int(), bytes: z.int() });

/** Costs nothing, so that only the engine is measured. */
const work = defineTool({
  name: 'work',
  description: 'does a step',
  input,
  effect: 'read',
  execute: async (call) => resultOf(call),
});

/** The same within the workflow task. */
const inlineWork = defineTool({
  name: 'work',
  description: 'does a step',
  input,
  effect: 'read',
  inline: true,
  execute: (call) => resultOf(call),
});

/** Milliseconds of a read of the network in the same building. */
export const READ_MS = 20;

function reading(name: string, inline: boolean): Tool {
  return defineTool({
    name,
    description: 'reads',
    input,
    effect: 'read',
    inline,
    async execute(call) {
      await pause(READ_MS);
      return resultOf(call);
    },
  });
}

/** The same for a tool whose calls are remembered for the rest of the turn. */
const change = defineTool({
  name: 'change',
  description: 'does a step once',
  input,
  effect: 'keyed',
  execute: async (call) => resultOf(call),
});

/** Takes effect at its destination, which sees every attempt. */
function posting(name: string, effect: Effect, url: string): Tool {
  return defineTool({
    name,
    description: 'does a step elsewhere',
    input,
    effect,
    async execute(call, { idempotencyKey, signal }) {
      const body = JSON.stringify({ tool: name, key: idempotencyKey, input: call });
      const response = await fetch(url, { method: 'POST', body, signal });
      await response.arrayBuffer();
      return resultOf(call);
    },
  });
}

/** Runs until it is aborted, and reports when it began and when it received the abort. */
function hanging(tell: (event: 'tool-started' | 'tool-aborted') => void): Tool {
  return defineTool({
    name: 'hang',
    description: 'takes long',
    input,
    effect: 'read',
    async execute(_, { signal }) {
      tell('tool-started');
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      tell('tool-aborted');
      throw signal.reason;
    },
  });
}

/**
 * The agents of the bench. Model `stub` is served over HTTP; all others are in the worker's
 * process.
 */
export function benchAgents(world: {
  readonly ledgerUrl: string;
  readonly tell: (event: string) => void;
}): readonly Agent[] {
  const { ledgerUrl, tell } = world;
  return [
    agent('scripted', 'scripted', [work]),
    agent('http', 'stub', [work]),
    agent('inline', 'scripted', [inlineWork, reading('read', true)]),
    agent('inline-http', 'stub', [inlineWork]),
    agent('reading', 'scripted', [reading('read', false)]),
    agent('streamed', 'streamed', [work]),
    agent('speaking', 'speaking', [work]),
    defineAgent({
      name: 'extract',
      instructions: INSTRUCTIONS,
      model: 'extracting',
      output: z.object({ text: z.string() }),
    }),
    agent('bounded', 'bounded', [change]),
    agent('unbounded', 'unbounded', [change]),
    agent('hang', 'stub', [hanging(tell)]),
    agent('ledger', 'stub', [
      posting('post', 'keyed', ledgerUrl),
      posting('look', 'read', ledgerUrl),
    ]),
  ];
}

function agent(name: string, model: string, tools: readonly Tool[]): Agent {
  return defineAgent({ name, instructions: INSTRUCTIONS, model, tools, limits: NO_LIMITS });
}
