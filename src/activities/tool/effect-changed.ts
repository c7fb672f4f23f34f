import type { Effect, ToolDefinition } from '../../core/definition/definition.js';

export const START_ANEW = 'start a new run, or deploy the earlier form of the tool';

/** Says why a call is blocked: what the tool does to the world is not what the run was promised. */
export function effectChanged({ name, effect }: ToolDefinition, now: Effect): string {
  return `tool "${name}" was "${effect}" when the run began and is "${now}" now; ${START_ANEW}`;
}
