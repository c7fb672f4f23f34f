import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { isTool } from '../tools/tool.js';
import { property, zodKind } from '../validation/check-options.js';
import type { Agent, CalledAgent } from './agent.js';

/** Whether a value was made by `defineAgent`. */
export function isAgent(value: unknown): value is Agent {
  return isObject(value) && isObject(value['tools']) && 'names' in value['tools'];
}

/** Throws an `InputError` for anything but an agent, such as its name. */
export function assertAgent(agent: unknown, where = 'agent'): void {
  if (isAgent(agent)) return;
  const problem =
    notAnAgent(agent) ??
    `expected an agent, got ${show(agent)}; make it with defineAgent({…}) or defineGraph({…})`;
  throw new InputError(`${where}: ${problem}`);
}

/**
 * Returns what is wrong with what an author has made and that is not an agent, such as a tool, and
 * how an agent is made of it; undefined for any other value.
 */
export function notAnAgent(value: unknown): string | undefined {
  if (typeof property(value, 'wire') === 'function') {
    return is('a graph whose exits are not wired', 'call .wire({ start, edges }) on it');
  }
  if (isTool(value)) return is('a tool', 'give it to an agent: defineAgent({ tools: […] })');
  if (isMcpServer(value)) {
    return is('an MCP server', 'give it to an agent: defineAgent({ mcp: […] })');
  }
  const kind = zodKind(value);
  if (kind !== undefined) {
    return is(
      `a zod schema of type ${show(kind)}`,
      'give it to an agent: defineAgent({ output: … })',
    );
  }
  if (typeof value !== 'function') return undefined;
  return is('a function', 'make an agent with defineAgent({…}), and give the agent itself');
}

function is(got: string, fix: string): string {
  return `expected an agent, got ${got}; ${fix}`;
}

/** An agent as an option. The message says how to turn into one what is not an agent yet. */
export const givenAgent: z.ZodType<Agent> = z.custom<Agent>(isAgent, {
  error: ({ input }) => notAnAgent(input) ?? 'expected an agent; make it with defineAgent({…})',
  abort: true,
});

/**
 * Returns an entry of `agents` with the agent in `agent`, also if it is none: the check then says how
 * to make one of it.
 */
export function calledEntry(given: Agent | CalledAgent): CalledAgent {
  return holdsAgent(given) ? given : { agent: given };
}

function holdsAgent(given: Agent | CalledAgent): given is CalledAgent {
  return !isAgent(given) && notAnAgent(given) === undefined;
}

/** Whether a value was made by `mcpServer`. */
export function isMcpServer(value: unknown): boolean {
  return isObject(value) && 'connectMs' in value;
}
