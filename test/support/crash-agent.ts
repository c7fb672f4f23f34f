import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Limits, OnLimit } from '../../src/core/definition/definition.js';
import { replyCalls, replyText, type Reply } from '../../src/testing/replies.js';
import type { StubRequest } from '../../src/testing/wire-input.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Tool } from '../../src/tools/tool.js';

/** An agent whose tools only write to the ledger. */
export function crashAgent(
  ledgerUrl: string,
  rest: { name?: string; limits?: Limits; onLimit?: OnLimit } = {},
): Agent {
  return defineAgent({
    name: 'crash',
    instructions: 'do the steps',
    model: 'stub',
    tools: [
      ledgerTool('look', 'read', ledgerUrl),
      ledgerTool('put', 'keyed', ledgerUrl),
      spinTool,
      payTool(ledgerUrl),
      transferTool(ledgerUrl),
    ],
    ...rest,
  });
}

function ledgerTool(name: string, effect: 'read' | 'keyed', url: string): Tool {
  return defineTool({
    name,
    description: `${name} something`,
    input: z.object({ step: z.number(), part: z.number() }),
    effect,
    heartbeat: 2_000,
    async execute(input, { idempotencyKey, signal, run }) {
      const body = JSON.stringify({ tool: name, key: idempotencyKey, input, run: run.id });
      const response = await fetch(url, { method: 'POST', body, signal });
      return await response.json();
    },
  });
}

/**
 * Blocks its process on the first attempt, so that the server considers the worker dead while it is
 * alive.
 */
const spinTool = defineTool({
  name: 'spin',
  description: 'spins',
  input: z.object({ forMs: z.number() }),
  effect: 'read',
  heartbeat: 1_000,
  async execute({ forMs }, { call }) {
    const until = Date.now() + (call.attempt === 1 ? forMs : 0);
    while (Date.now() < until);
    return `spun in attempt ${call.attempt} of process ${process.pid}`;
  },
});

/** Takes effect once, then is lost with its worker unless the ledger lets it answer. */
function payTool(url: string): Tool {
  return defineTool({
    name: 'pay',
    description: 'pays',
    input: z.object({ amount: z.number() }),
    effect: 'once',
    heartbeat: 1_000,
    async execute(input, { idempotencyKey, signal, run }) {
      const body = JSON.stringify({ tool: 'pay', key: idempotencyKey, input, run: run.id });
      const response = await fetch(url, { method: 'POST', body, signal });
      return await response.json();
    },
  });
}

/**
 * Requests a quote before it takes effect, so that a test can freeze it in between. Its `verify`
 * sets a fence. It ignores the signal: a late transfer must still arrive.
 */
function transferTool(url: string): Tool {
  const post = async (entry: unknown): Promise<unknown> => {
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(entry) });
    if (!response.ok) throw new Error(`the ledger answered ${response.status}`);
    return await response.json();
  };
  return defineTool({
    name: 'transfer',
    description: 'transfers',
    input: z.object({ amount: z.number() }),
    effect: 'once',
    heartbeat: 1_000,
    async execute(input, { idempotencyKey: key, call: { scheduledAt } }) {
      await post({ tool: 'quote', key: `quote for ${key}`, input });
      return await post({ tool: 'transfer', key, input, scheduledAt });
    },
    async verify(key, { scheduledAt }) {
      return (await post({ key, fence: scheduledAt })) as { happened: boolean };
    },
  });
}

export const CRASH_STEPS = 5;

/** The model of the crash runs: the same request always gets the same answer. */
export function crashAnswer(request: StubRequest): Reply {
  const step = request.assistantMessages;
  if (step >= CRASH_STEPS) return replyText(`done after ${step} steps`);
  const parts = step % 2 === 0 ? [0] : [0, 1];
  return replyCalls(
    parts.map((part) => ({ name: part === 0 ? 'put' : 'look', arguments: { step, part } })),
  );
}
