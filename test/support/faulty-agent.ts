import { appendFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Model, ModelReply } from '../../src/models/model.js';
import { defineTool } from '../../src/tools/define-tool.js';

const input = z.object({ n: z.number() });

/** An agent whose tools write a line to the ledger, a file, each time they are executed. */
export function faultyAgent(ledger: string): Agent {
  const tool = (name: string, effect: 'read' | 'keyed' | 'once') =>
    defineTool({
      name,
      description: 'Writes to the ledger.',
      input,
      effect,
      heartbeat: 1_000,
      execute: async ({ n }) => {
        await appendFile(ledger, `${name} ${n}\n`);
        return `${name} ${n} done`;
      },
    });
  const tools = [tool('look', 'read'), tool('put', 'keyed'), tool('pay', 'once')];
  return defineAgent({ name: 'faulty', instructions: 'Work.', model: 'm', tools });
}

/** A model that calls the tools one after another. It keeps nothing: each worker has its own. */
export const faultyModel: Model = {
  async call({ messages }) {
    const step = messages.filter(({ role }) => role === 'assistant').length;
    const name = ['look', 'put', 'pay'][step];
    const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
    const reply: ModelReply = { text: 'Done.', calls: [], finish: 'stop', usage };
    if (name === undefined) return reply;
    return { ...reply, text: '', calls: [{ name, arguments: '{"n":1}' }], finish: 'calls' };
  },
};
