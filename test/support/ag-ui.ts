import { randomUUID } from 'node:crypto';
import { type BaseEvent, EventType, type HttpAgent, type Message } from '@ag-ui/client';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Rule } from '../../src/core/definition/rules.js';
import { defineTool } from '../../src/tools/define-tool.js';

/** An agent that asks for all payments of its message at once. `name`, `rule`: in place of its own. */
export function payer(
  paid: number[],
  { name = 'payer', rule = {} }: { readonly name?: string; readonly rule?: Partial<Rule> } = {},
) {
  const pay = defineTool({
    name: 'pay',
    description: 'pays',
    input: z.object({ euros: z.number() }),
    effect: 'keyed',
    describe: ({ euros }) => `pay ${euros} €`,
    execute: async ({ euros }) => {
      paid.push(euros);
      return `paid ${euros}`;
    },
  });
  return defineAgent({
    name,
    instructions: 'x',
    tools: [pay],
    rules: [{ tool: 'pay', then: 'ask', ...rule }],
    decide: async ({ messages }) => {
      const results = messages.flatMap(({ role, text }) => (role === 'tool' ? [text] : []));
      if (results.length > 0) return { answer: results.join(', ') };
      const numbers = (messages.at(-1)?.text ?? '').match(/\d+/g) ?? [];
      if (numbers.length === 0) return { answer: 'nothing to pay' };
      return {
        calls: numbers.map((euros) => ({ name: 'pay', arguments: { euros: Number(euros) } })),
      };
    },
  });
}

export interface Watched {
  readonly agent: HttpAgent;
  /** All events that it has accepted. */
  readonly events: BaseEvent[];
}

/** An agent of the official client, on a thread of its own. */
export function watch<Agent extends HttpAgent>(agent: Agent): Watched & { readonly agent: Agent } {
  const events: BaseEvent[] = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  return { agent, events };
}

export function say(agent: HttpAgent, content: string, id = `m-${randomUUID()}`) {
  agent.addMessage({ id, role: 'user', content });
  return agent.runAgent();
}

export const textsOf = (messages: readonly Message[]): string[] =>
  messages.map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : ''}`);
export const typesOf = ({ events }: Watched): string[] => events.map(({ type }) => type);
export const runOf = ({ events }: Watched): string => {
  const started = events.find(({ type }) => type === EventType.RUN_STARTED);
  return z.object({ perdure: z.object({ run: z.string() }) }).parse(started?.['metadata']).perdure
    .run;
};
export const errorsOf = ({ events }: Watched) =>
  events.flatMap((event) => (event.type === EventType.RUN_ERROR ? [event] : []));
export const approve = (interruptId: string, payload: object = { approved: true }) =>
  ({ interruptId, status: 'resolved', payload }) as const;
