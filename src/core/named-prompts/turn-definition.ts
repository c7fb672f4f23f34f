import type { AgentDefinition } from '../definition/definition.js';
import { variantNode, definitionAt } from '../graph/node-definition.js';
import type { RunState } from '../state.js';
import type { JsonObject } from '../json.js';
import { findPrompt } from './named-prompt.js';

/** What makes the definition for a model call differ from the agent's own. */
export interface DefinitionVariant {
  /** The graph's node whose model calls differ from the graph's definition. */
  readonly node?: string;
  /** The prompt of the agent that the turn's message names. */
  readonly prompt?: string;
  /** Settings that the turn's messages add to those of the agent and the prompt. */
  readonly settings?: JsonObject;
}

/**
 * Returns the definition for a model call and for the check of its reply. The workflow, the worker,
 * and each reader of a history apply this rule to the pinned definition.
 */
export function definitionFor(
  definition: AgentDefinition,
  { node, prompt, settings: added }: DefinitionVariant,
): AgentDefinition {
  const own = withPrompt(definition, { node, prompt });
  return added === undefined ? own : { ...own, settings: { ...own.settings, ...added } };
}

function withPrompt(
  definition: AgentDefinition,
  { node, prompt }: { readonly node: string | undefined; readonly prompt: string | undefined },
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
    // The tools stay in the request to keep the prompt's prefix, and because some models require
    // the tools of earlier calls.
    ...(own?.size === 0 && { toolChoice: 'none' as const }),
    ...(own && own.size > 0 && { tools: rest.tools.filter(({ name }) => own.has(name)) }),
    ...(settings && { settings: { ...rest.settings, ...settings } }),
  };
}

/** Returns the variant for the run's next model call; empty for the agent's own definition. */
export function currentVariant(state: RunState): DefinitionVariant {
  const node = variantNode(state);
  const { prompt, settings } = state.turn;
  return {
    ...(node !== undefined && { node }),
    ...(prompt !== undefined && { prompt }),
    ...(settings !== undefined && { settings }),
  };
}

/** Returns the definition for the run's next model call. */
export function currentDefinition(state: RunState): AgentDefinition {
  return definitionFor(state.config.definition, currentVariant(state));
}
