import { appendFileSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';

/** How long a check blocks its process. */
const BLOCK_MS = 3_000;

/**
 * Agents whose checks block the worker's only thread: `blocking-answer` in the first check of each
 * answer, `blocking-arguments` in each check of a call. `checks` is a file that gets a line for
 * each check.
 */
export function blockingAgents(checks: string | undefined): readonly Agent[] {
  if (checks === undefined) return [];
  const block = (what: string, times: number): boolean => {
    appendFileSync(checks, `${what}\n`);
    const before = readFileSync(checks, 'utf8').split('\n');
    const until = Date.now() + BLOCK_MS;
    while (before.filter((line) => line === what).length <= times && Date.now() < until);
    return true;
  };
  const file = defineTool({
    name: 'file',
    description: 'files a note',
    input: z.object({ note: z.string().refine((note) => block(note, Infinity)) }),
    effect: 'read',
    execute: async () => 'filed',
  });
  return [
    defineAgent({
      name: 'blocking-answer',
      instructions: 'x',
      model: 'stub',
      output: z.object({ name: z.string().refine((name) => block(name, 1)) }),
    }),
    defineAgent({ name: 'blocking-arguments', instructions: 'x', model: 'stub', tools: [file] }),
  ];
}
