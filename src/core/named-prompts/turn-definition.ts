import type { AgentDefinition } from '../definition/definition.js';
import { askingNode, definitionAt } from '../graph/node-definition.js';
import type { RunState } from '../state.js';
import { findPrompt } from './named-prompt.js';

/** What makes a model call differ from one by the agent's own definition. */
export interface Asking {
  /** The node of the graph that asks the model in its own way. */
  readonly node?: string;
  /** The prompt of the agent that the turn's message names. */
  readonly prompt?: string;
}

/**
 * Returns the definition by which a model call asks and its reply is checked. This is the one rule about
 * what a turn uses: the workflow, the worker, and each reader of a history apply it to the pinned definition.
 */
export function definitionFor(
  definition: AgentDefinition,
  { node, prompt }: Asking,
): AgentDefinition {
  const at = definitionAt(definition, node);
  const found = findPrompt(definition, prompt);
  if (found === undefined) return at;
  const { output = at.output, attempts = at.attempts, tools, settings } = found;
  const { output: _output, attempts: _attempts, ...rest } = at;
  const own = tools && new Set(tools);
  return {
    ...rest,
    ...(output && { output }),
    ...(output && attempts !== undefined && { attempts }),
    // Without calls, the prefix of the prompt stays the same; some models also want to see the tools of earlier calls.
    ...(own?.size === 0 && { toolChoice: 'none' as const }),
    ...(own && own.size > 0 && { tools: rest.tools.filter(({ name }) => own.has(name)) }),
    ...(settings && { settings: { ...rest.settings, ...settings } }),
  };
}

/** Returns what makes the run's next model call differ. */
export function currentAsking(state: RunState): Asking {
  const node = askingNode(state);
  const { prompt } = state.turn;
  return { ...(node !== undefined && { node }), ...(prompt !== undefined && { prompt }) };
}

/** Returns the definition for the run's next model call. */
export function currentDefinition(state: RunState): AgentDefinition {
  return definitionFor(state.config.definition, currentAsking(state));
}
