import { inject } from 'vitest';
import { z } from 'zod';
import type { Agent, AgentOptions } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { createClient } from '../../src/index.js';
import type { ClientOptions, PerdureClient } from '../../src/client/client-types.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Rig } from './rig.js';

/** An agent for `obedientModel`, with the tool that `steps N` calls. */
export function clerk(name = 'clerk', rest: Partial<AgentOptions> = {}): Agent {
  const note = defineTool({
    name: 'note',
    description: 'writes a text down',
    input: z.object({ text: z.string() }),
    effect: 'keyed',
    execute: async ({ text }) => `noted ${text}`,
  });
  return defineAgent({ name, instructions: 'do as told', model: 'm', tools: [note], ...rest });
}

/** A client of the product for the rig's queue, on the server with its own connection. */
export async function clientOf(rig: Rig, options: ClientOptions = {}): Promise<PerdureClient> {
  return await createClient({
    ...(rig.isInMemory ? { client: rig.client } : { address: inject('temporalAddress') }),
    taskQueue: rig.taskQueue,
    env: { PERDURE_HOME: rig.home },
    ...options,
  });
}
