import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { replyText, type Reply } from '../../src/testing/replies.js';
import type { StubRequest } from '../../src/testing/wire-input.js';

/**
 * An agent whose answers have a schema and a refinement that the model does not know in advance.
 */
export function contractAgent(): Agent<{ name: string; age: number }> {
  return defineAgent({
    name: 'contract',
    instructions: 'extract the person',
    model: 'stub',
    output: z
      .object({ name: z.string(), age: z.number() })
      .refine(({ age }) => age % 2 === 0, { path: ['age'], message: 'must be even' }),
  });
}

/** The replies of the model in the contract runs, in order; only the last one is valid. */
export const CONTRACT_ANSWERS = [
  '{"name": "Ann", "age": 41}',
  '{"name": "Ann", "age": ',
  '{"name": "Ann", "age": "forty"}',
  '{"name": "Ann", "age": 40}',
] as const;

/** The same request always gets the same answer. */
export function contractAnswer({ assistantMessages }: StubRequest): Reply {
  return replyText(CONTRACT_ANSWERS[assistantMessages] ?? 'asked too often');
}
