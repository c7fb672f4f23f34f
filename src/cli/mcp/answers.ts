import type { CallToolResult } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { printable } from '../../core/text/hidden.js';
import type { Outcome } from '../../core/outcome.js';
import type { RunStatus } from '../../core/status.js';

/** What `agent_status` gives. */
export const statusAnswer = z.object({
  id: z.string(),
  agent: z.string(),
  status: z.string().describe('working, waiting_message, waiting_time, blocked, paused or done'),
  reason: z.string().nullable().describe('why it ended, or why it is blocked'),
  message: z.string().nullable().describe('for people: what is wrong, and the cure'),
  turn: z.number(),
  step: z.number(),
  queued: z.number().describe('messages that wait for their turn'),
  doing: z.string().nullable(),
  pending: z
    .array(z.object({ call: z.string(), tool: z.string(), cure: z.string() }))
    .describe('calls that only a person can settle'),
});

/** What `agent_result` gives. */
export const resultAnswer = z.object({
  id: z.string(),
  done: z.boolean().describe('false: the turn goes on; ask again'),
  status: z
    .string()
    .describe('completed, stopped, cancelled or failed; of a turn that goes on, what it does'),
  reason: z.string().nullable(),
  answer: z.string().nullable(),
  output: z.unknown().describe('the typed value, of agents that give one'),
  message: z.string().nullable().describe('what went wrong, or what the run waits for'),
  steps: z.number(),
  cost_usd: z.number().nullable(),
});

export function statusOf(status: RunStatus): z.infer<typeof statusAnswer> {
  const { id, agent, reason, message, turn, step, queued, doing, pending } = status;
  return {
    id,
    agent,
    status: status.status,
    reason,
    message,
    turn,
    step,
    queued,
    doing,
    pending: pending.map(({ call, tool, cure }) => ({ call, tool, cure })),
  };
}

export function ended(id: string, outcome: Outcome): z.infer<typeof resultAnswer> {
  const { status, reason, answer, output, error, steps, usage } = outcome;
  return {
    id,
    done: true,
    status,
    reason,
    answer,
    output,
    message: error ?? null,
    steps,
    cost_usd: usage.costUsd,
  };
}

export function unfinished({
  id,
  status,
  reason,
  message,
  step,
  usage,
}: RunStatus): z.infer<typeof resultAnswer> {
  const { costUsd } = usage;
  return {
    id,
    done: false,
    status,
    reason,
    answer: null,
    output: null,
    message,
    steps: step,
    cost_usd: costUsd,
  };
}

/**
 * The same for programs and for models: structured, as it is, and as text a line for each field that says
 * something, with hidden characters written as escapes.
 */
export function told(answer: Readonly<Record<string, unknown>>): CallToolResult {
  const lines = Object.entries(answer)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(
      ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    );
  return {
    content: [{ type: 'text', text: printable(lines.join('\n')) }],
    structuredContent: { ...answer },
  };
}
